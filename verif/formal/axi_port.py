"""Port: what movers ask for leaves by the rules of AXI, W in the order of AW, each beat from the mover of its burst.

Movers keep their part (dma_reader, dma_writer): their bursts stay inside 4 KiB, what they offer stays. They may hold a
burst's beats back for ever, which the port does not hide: then W stops.
"""

import dataclasses

from amaranth.asserts import AnyConst
from amaranth.hdl import Array, Assert, Assume, Cat, Cover, Module, Mux, Signal
from amaranth.lib import wiring

from rtl.base.axi import FAST_ID, ID_BITS, LINK_ID, URGENT_QOS
from rtl.contract.config import DmaConfig, HbmConfig, named
from rtl.dma.movers.port import Port
from verif.formal.axi_rules import AxiRules, in_4_kib
from verif.formal.free import drive, fifo_sound
from verif.formal.proof import Proof, without_reset
from verif.formal.stream_rules import StreamRules

__all__ = ["PROOFS", "SMALLEST", "PortProof"]

SMALLEST = dataclasses.replace(
    named("tiny"),
    dma=DmaConfig(engines=4, rings=1, buffer_bytes=512, burst_bytes=128),
    hbm=HbmConfig(ports=2, port_bytes=16, bytes_per_cycle=16, latency_ns=25, capacity_mib=1),
)
"""Two movers a port, bursts of 8 beats at most, a buffer of 32."""


class PortProof(wiring.Component):
    """Two movers and one of a link; or two movers, of which the second one goes first. One burst of writes, and the
    answers to one id, are followed."""

    def __init__(self, *, first: bool = False):
        self.first = first
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = SMALLEST
        beside = FAST_ID if self.first else LINK_ID
        m.submodules.port = port = Port(cfg, 0, *(((), (FAST_ID,)) if self.first else ((LINK_ID,),)))
        without_reset(m)
        movers = range(len(port.movers))
        followed = Signal(ID_BITS)
        owner = AnyConst(range(3))
        m.d.comb += [Assume(owner < 3), followed.eq(Array(port.movers)[owner])]
        m.submodules.axi = axi = AxiRules(port.axi, cfg.hbm.port_bytes, followed)
        axi.free(m)
        drive(m, axi.pick)
        for k in movers:
            for kind in ("read", "write"):
                offer = getattr(port, kind)[k]
                drive(m, offer.valid)
                drive(m, offer.payload)
                burst = offer.payload
                inside = in_4_kib(burst.beat << 4, burst.length, cfg.hbm.port_bytes)
                m.submodules[f"{kind}{k}_rules"] = StreamRules(offer.valid, offer.ready, offer.payload, assume=True)
                m.d.comb += Assume(~offer.valid | inside)
            beat = Cat(port.w_data[k], port.w_strobe[k])
            drive(m, beat)
            m.submodules[f"w{k}_rules"] = StreamRules(port.w_valid[k], port.w_take[k], beat, assume=True)
        drive(m, port.w_valid)
        drive(m, port.b_ready)

        # whose beat it is, who gets an answer
        takes = Signal(len(port.w_take))
        m.d.comb += takes.eq(Cat(axi.beat_id == mover for mover in port.movers))
        sends = port.axi.wvalid & port.axi.wready
        with m.If(axi.beat_next):
            m.d.comb += [Assert(port.w_take == Mux(sends, takes, 0)), Assert((port.w_valid & takes).any())]
        m.d.comb += [
            Assert(port.w_take.any() == sends),
            Assert(port.b_valid == Mux(port.axi.bvalid, Cat(port.axi.bid == mover for mover in port.movers), 0)),
            Assert(port.beat_valid == Mux(port.axi.rvalid, Cat(port.axi.rid == mover for mover in port.movers), 0)),
            Assert(port.axi.rready),
        ]
        if self.first:
            self._first(m, port)
        self._invariants(m, port, axi)
        waits = {channel: rules.waits for channel, rules in axi.offers.items()}
        m.d.comb += [
            Cover(waits["ar"] & waits["aw"] & waits["w"] & axi.beat_next & (axi.beat_id == beside)),
            Cover(axi.beat_next & (axi.left == 0) & (axi.open_bursts == 3) & port.axi.wready),
            Cover(axi.beat_next & ~axi.watched & port.axi.wready),
            Cover(port.b_valid.any() & port.axi.bready & (axi.writes_due == 2)),
        ]
        return m

    def _first(self, m: Module, port: Port) -> None:
        """Whoever else asks, the one that goes first is taken, and its requests alone are urgent."""
        first = len(port.movers) - 1
        for kind, channel in (("read", "ar"), ("write", "aw")):
            offers = getattr(port, kind)
            others = Cat(offer.ready & offer.valid for offer in offers[:first])
            valid, who, qos = (getattr(port.axi, f"{channel}{name}") for name in ("valid", "id", "qos"))
            m.d.comb += [
                Assert(~(offers[first].valid & others.any())),
                Assert(~valid | (qos == Mux(who == FAST_ID, URGENT_QOS, 0))),
            ]
        others = Cat(offer.ready & offer.valid for offer in port.write[:first])
        m.d.comb += Assert(~others.any() | (port.grants.level < 2))

    def _invariants(self, m: Module, port: Port, axi: AxiRules) -> None:
        """What the induction must know: grants are the open bursts, and which of them is followed."""
        grants, depth = port.grants, port.grants.depth
        offered = port.axi.awvalid & ~axi.offers["aw"].waits
        place = Signal(range(2 * depth))
        m.d.comb += [
            Assert(fifo_sound(grants)),
            Assert(grants.level == axi.open_bursts + offered),
            Assert(~axi.watched | (axi.ahead + offered < grants.level)),
            place.eq((grants.read + axi.ahead)[:2]),
            Assert((port.count == 0) | (grants.level != 0)),
        ]
        newest = (grants.read + grants.level - 1)[:2]
        oldest = Signal(8)
        m.d.comb += oldest.eq(Array(e.length for e in grants.entries)[grants.read])
        m.d.comb += Assert((grants.level == 0) | (port.count <= oldest))
        mover = Array(Array(port.movers)[e.mover] for e in grants.entries)
        length = Array(e.length for e in grants.entries)
        with m.If(offered):
            m.d.comb += [Assert(length[newest] == port.axi.awlen), Assert(mover[newest] == port.axi.awid)]
        with m.If(axi.watched):
            m.d.comb += [
                Assert(mover[place] == axi.kept_id),
                Assert(length[place] == axi.left + Mux(axi.ahead == 0, port.count, 0)),
            ]
        for entry in grants.entries:
            m.d.comb += Assert(entry.mover < len(port.movers))


_FAULTS = (
    "a request of a mover replaces one that waits",
    "a burst's beats go before its address is offered",
    "the beat before the last is marked as the last",
)

PROOFS = (
    Proof(
        name="axi_port",
        make=PortProof,
        depth=3,
        cover_depth=14,
        fault_depth=10,
        faults=_FAULTS,
        short=True,
    ),
    Proof(
        name="axi_port_first",
        make=lambda: PortProof(first=True),
        depth=3,
        cover_depth=14,
        fault_depth=10,
        faults=(
            *_FAULTS,
            "a port has no class that goes first",
            "a port takes as many bursts before the class that goes first",
        ),
        short=True,
    ),
)
