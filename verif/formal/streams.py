"""Units that promise the rules of streams at their outputs, whatever surrounds them."""

from collections.abc import Callable, Mapping

from amaranth.hdl import Cover, Module, Value
from amaranth.lib import wiring

from rtl.contract.link_config import LINKS
from rtl.link.core_side.packet_merge import PacketMerge
from rtl.link.core_side.packet_pack import PacketPack
from rtl.link.core_side.packet_split import PacketSplit
from verif.formal.proof import Proof, without_reset
from verif.formal.stream_rules import surround

__all__ = ["PROOFS", "StreamsProof"]

_X16 = LINKS["x16"]


class StreamsProof(wiring.Component):
    """Inputs are free within the rules; every output waits at least two cycles in a row in some run, and goes on."""

    def __init__(self, unit: wiring.Component, fixed: Mapping[str, int]):
        self.unit = unit
        self.fixed = fixed
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.unit = self.unit
        without_reset(m)
        for rules in surround(m, self.unit, **self.fixed).values():
            m.d.comb += Cover(rules.waits & rules.valid & Value.cast(rules.ready))
        return m


def _proof(name: str, unit: Callable[[], wiring.Component], fault: str, **fixed: int) -> Proof:
    return Proof(
        name=f"stream_{name}",
        make=lambda: StreamsProof(unit(), fixed),
        depth=3,
        cover_depth=10,
        fault_depth=10,
        short=True,
        faults=(fault,),
    )


PROOFS = (
    _proof("packet_merge", lambda: PacketMerge(_X16), "leaves a request for a response in its middle"),
    _proof("packet_pack", lambda: PacketPack(_X16), "the rest leaves with the class of the packet behind it"),
    _proof("packet_split", lambda: PacketSplit(_X16), "bytes of the next beat are in the last one"),
)
