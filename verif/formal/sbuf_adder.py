"""SbufAdder behind SbufShare: no sum of two writers is lost, and each writer is told the ends of its own."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Array, Assert, Cat, Cover, Module, Mux, Signal, Value
from amaranth.lib import wiring

from rtl.base.memory_port import SbufMoverSignature
from rtl.contract.config import Config, SbufConfig, named
from rtl.contract.descriptor import DmaAdd
from rtl.dma.sbuf_share import SbufShare
from rtl.memory.sbuf_adder import SbufAdder
from verif.formal.arbiter import ones
from verif.formal.proof import Proof, without_reset

__all__ = ["PROOFS", "SbufAdderProof"]

_BITS = 1  # of each 16 bytes that are looked at: the rest of them goes the same way
_COUNT = 4  # bits that count sums under way


class SbufAdderProof(wiring.Component):
    """Any writes of two writers, any refusals of SBUF; 16 bytes of any place are followed. Sums are those of the
    lowest bits, two cycles after the old bytes, as SbufSums makes them."""

    def __init__(self, cfg: Config, *, always: bool = False):
        self.cfg = cfg
        self.always = always
        self.adder = SbufAdder(cfg)
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.share = share = SbufShare(self.cfg, always=self.always)
        m.submodules.adder = adder = self.adder
        without_reset(m)
        writers = {"mover": share.mover, "link": share.link}
        for writer in writers.values():
            for name, member in SbufMoverSignature(self.cfg).members.items():
                if name.startswith("write_") and name not in ("write_ready", "write_done", "write_data", "write_bytes"):
                    m.d.comb += getattr(writer, name).eq(AnySeq(Value.cast(getattr(writer, name)).shape()))
                    assert member.flow == wiring.Out
            m.d.comb += writer.write_data.eq(AnySeq(_BITS))
        sbuf = share.sbuf
        for name in ("valid", "lane", "pair", "data", "bytes", "add", "last"):
            m.d.comb += getattr(adder.mover, f"write_{name}").eq(getattr(sbuf, f"write_{name}"))
        m.d.comb += [
            sbuf.write_ready.eq(adder.mover.write_ready),
            sbuf.write_done.eq(adder.mover.write_done),
            adder.look_ready.eq(AnySeq(1)),
            adder.write_ready.eq(AnySeq(1)),
        ]

        # the bytes that are followed, and what they should be
        lane, pair = AnyConst(len(adder.look_lane)), AnyConst(len(adder.look_pair))
        value, want, old = Signal(_BITS), Signal(_BITS), Signal(_BITS)
        sums = [Signal(_BITS, name=f"sum{n}") for n in range(2)]

        def here(at_lane: Value, at_pair: Value) -> Value:
            return (at_lane == lane) & (at_pair == pair)

        with m.If(adder.write_valid & adder.write_ready & here(adder.write_lane, adder.write_pair)):
            m.d.sync += value.eq(Mux(adder.sums, adder.write_sum, sbuf.write_data))
        m.d.sync += [
            old.eq(Mux(here(adder.look_lane, adder.look_pair), value, AnySeq(_BITS))),
            sums[0].eq(old + adder.sum_new[:_BITS]),
            sums[1].eq(sums[0]),
        ]
        m.d.comb += adder.sum.eq(sums[1])
        takes = sbuf.write_valid & sbuf.write_ready
        with m.If(takes & here(sbuf.write_lane, sbuf.write_pair)):
            m.d.sync += want.eq(Mux(sbuf.write_add == DmaAdd.COPY, 0, want) + sbuf.write_data[:_BITS])

        under_way = Cat(
            busy & here(at_lane, at_pair)
            for busy, at_lane, at_pair in zip(adder.busy, adder.lanes, adder.pairs, strict=True)
        )
        m.d.comb += [
            Assert((value == want) | under_way.any()),
            Assert(ones(under_way) <= 1),
            Cover(value & want & ~under_way.any()),
            Cover(Cat(adder.busy).all() & under_way.any() & ~adder.write_ready),
        ]

        self._order(m, adder, want, here, (old + adder.sum_new[:_BITS])[:_BITS], *sums)
        self._ends(m, adder, share, writers)
        self._clock(m, adder)
        return m

    @staticmethod
    def _clock(m: Module, adder: SbufAdder) -> None:
        """Without `adding` no register changes of which anything depends, so its clock may stand."""
        held = adder.held
        state = Cat(*adder.busy, adder.ages, adder.youngest, adder.oldest, held.level, held.write, held.read)
        state = Cat(state, *(Cat(adder.lanes[n], adder.pairs[n], adder.lasts[n]) for n in range(len(adder.busy))))
        before = Signal(len(state))
        stands = Signal()
        m.d.sync += [before.eq(state), stands.eq(~adder.adding)]
        with m.If(stands):
            m.d.comb += Assert(state == before)
        m.d.comb += Cover(stands & (adder.youngest != 0))

    @staticmethod
    def _order(
        m: Module, adder: SbufAdder, want: Signal, here: Callable[[Value, Value], Value], *stages: Value
    ) -> None:
        """Places are taken and left in turn; what is in the lanes, or held behind them, of the bytes that are followed
        is what they are to be. For the induction."""
        places = len(adder.busy)
        busy, held = Cat(*adder.busy), adder.held
        count = ones(busy)
        m.d.comb += [
            Assert(adder.youngest == (adder.oldest + count)[: len(adder.oldest)]),
            Assert(held.level + ones(adder.ages) == count),
            Assert(held.write == (held.read + held.level)[: len(held.read)]),
        ]
        lane, pair = Array(adder.lanes), Array(adder.pairs)
        for k in range(places):
            place = Signal.like(adder.oldest, name=f"place{k}")
            entry = Signal.like(held.read, name=f"entry{k}")
            m.d.comb += [
                place.eq(adder.oldest + k),
                entry.eq(held.read + k),
                Assert(busy.bit_select(place, 1) == (count > k)),
            ]
            with m.If((held.level > k) & here(lane[place], pair[place])):
                m.d.comb += Assert(Array(held.entries)[entry][:_BITS] == want)
        for age, total in enumerate(stages):
            place = Signal.like(adder.oldest, name=f"aged{age}")
            older = ones(adder.ages[age + 1 :]) if age + 1 < len(stages) else 0
            m.d.comb += place.eq(adder.oldest + held.level + older)
            with m.If(adder.ages[age] & here(lane[place], pair[place])):
                m.d.comb += Assert(total == want)

    @staticmethod
    def _ends(m: Module, adder: SbufAdder, share: SbufShare, writers: Mapping[str, wiring.PureInterface]) -> None:
        """Each writer is told as many ends as it has begun."""
        ends = share.ends
        open_ = ones(Cat(busy & last for busy, last in zip(adder.busy, adder.lasts, strict=True)))
        m.d.comb += [
            Assert(ends.level == open_),
            Assert(~ends.i.valid | ends.i.ready),
            Assert(ends.write == (ends.read + ends.level)[: len(ends.read)]),
        ]
        # the ends that wait come in the order of their places
        for number, (name, writer) in enumerate(writers.items()):
            count = Signal(_COUNT, name=f"open_{name}")
            begins = writer.write_valid & writer.write_ready & writer.write_last & (writer.write_add != DmaAdd.COPY)
            m.d.sync += count.eq(count + begins - writer.write_done)
            mine: list[Value] = []
            for k in range(len(ends.entries)):
                at = Signal.like(ends.read, name=f"end_{name}{k}")
                m.d.comb += at.eq(ends.read + k)
                mine.append((ends.level > k) & (Array(ends.entries)[at] == number))
            m.d.comb += [
                Assert(count == ones(Cat(*mine))),
                Assert(~(writer.write_done & (count == 0))),
                Cover(writer.write_done & (count == 3)),
            ]


PROOFS = tuple(
    Proof(
        name=name,
        make=lambda always=always: SbufAdderProof(
            replace(named("tiny"), sbuf=SbufConfig(partition_bytes=1024, banks=2)), always=always
        ),
        depth=2,
        cover_depth=14,
        fault_depth=12,
        short=True,
        faults=(
            "a sum beside SBUF does not wait for one of the same bytes",
            "a mover's add overwrites what is in SBUF",
            "the end of a sum is told before it is in SBUF",
            "the clock of sums beside SBUF stops before they are written",
        ),
    )
    for name, always in (("sbuf_adder", False), ("sbuf_adder_first", True))
)
