"""Credit, ClockRatio and Wake: nothing is lost, and exactly as many ticks as promised."""

from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Assert, Assume, Cover, Module, Mux, Signal
from amaranth.lib import wiring

from rtl.base.clock_ratio import ClockRatio
from rtl.base.credit import Credit
from rtl.base.wake import Wake
from verif.formal.arbiter import ones
from verif.formal.proof import Proof, without_reset

__all__ = ["PROOFS", "ChosenRatioProof", "ClockRatioProof", "CreditProof", "WakeProof"]


class CreditProof(wiring.Component):
    """Credits held and credits out always sum to the limit."""

    LIMIT = 6
    MOST = 2

    def __init__(self):
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.credit = credit = Credit(self.LIMIT, self.MOST)
        without_reset(m)
        out = Signal(range(self.LIMIT + self.MOST + 1))
        take = Signal.like(credit.take)
        give = Signal.like(credit.give)
        m.d.comb += [
            take.eq(AnySeq(len(take))),
            give.eq(AnySeq(len(give))),
            credit.take.eq(take),
            credit.give.eq(give),
            Assume((take <= self.MOST) & (take <= credit.count)),
            Assume((give <= self.MOST) & (give <= out)),
            Assert(credit.count + out == self.LIMIT),
            Cover(credit.count == 0),
            Cover((take == self.MOST) & (give == self.MOST)),
        ]
        m.d.sync += out.eq(out + take - give)
        return m


class ClockRatioProof(wiring.Component):
    """Exactly `num` ticks in the last `den` cycles, whenever one looks."""

    def __init__(self, num: int, den: int):
        self.num = num
        self.den = den
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.ratio = ratio = ClockRatio(self.num, self.den)
        without_reset(m)
        history = Signal(self.den)
        age = Signal(range(self.den + 1))
        m.d.sync += history.eq((history << 1) | ratio.tick)
        with m.If(age != self.den):
            m.d.sync += age.eq(age + 1)
        with m.Else():
            m.d.comb += Assert(ones(history) == self.num)
        m.d.comb += [
            Assert(age <= self.den),
            Assert(ratio.phase < self.den),  # for the induction
            Cover((age == self.den) & ratio.tick),
        ]
        with m.If(age == 0):
            m.d.comb += Assert(ratio.tick)
        return m


class ChosenRatioProof(wiring.Component):
    """Exactly `ticks` ticks in the last `cycles` cycles, whatever they stand at, up to MOST cycles."""

    MOST = 5

    def __init__(self):
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.ratio = ratio = ClockRatio(1, 2, bits=3)
        without_reset(m)
        ticks, cycles = Signal(3), Signal(3)
        m.d.comb += [
            ticks.eq(AnyConst(3)),
            cycles.eq(AnyConst(3)),
            Assume((ticks != 0) & (ticks <= cycles) & (cycles <= self.MOST)),
            ratio.ticks.eq(ticks),
            ratio.cycles.eq(cycles),
        ]
        history = Signal(self.MOST)
        age = Signal(range(self.MOST + 1))
        m.d.sync += [history.eq((history << 1) | ratio.tick), age.eq(Mux(age == self.MOST, age, age + 1))]
        for length in range(1, self.MOST + 1):
            with m.If((cycles == length) & (age >= length)):
                m.d.comb += Assert(ones(history[:length]) == ticks)
        m.d.comb += [
            Assert(age <= self.MOST),
            Assert(ratio.phase < cycles),  # for the induction
            Cover((age == self.MOST) & ratio.tick & (ticks == 3) & (cycles == 4)),
        ]
        with m.If(age == 0):
            m.d.comb += Assert(ratio.tick)
        return m


class WakeProof(wiring.Component):
    """Enabled exactly while there was work in this cycle or one of the last `LINGER`."""

    LINGER = 3

    def __init__(self):
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.wake = wake = Wake(self.LINGER)
        without_reset(m)
        m.d.comb += wake.active.eq(AnySeq(1))
        history = Signal(self.LINGER)
        m.d.sync += history.eq((history << 1) | wake.active)
        m.d.comb += [
            Assert(wake.enable == (wake.active | history.any())),
            Cover(wake.enable & ~wake.active & ~history[: self.LINGER - 1].any()),
        ]
        return m


PROOFS = (
    Proof(name="wake", make=WakeProof, depth=5, cover_depth=8, short=True),
    Proof(
        name="credit",
        make=CreditProof,
        depth=3,
        cover_depth=8,
        faults=("a credit given back while one is taken is lost",),
        short=True,
    ),
    Proof(
        name="clock_ratio",
        make=lambda: ClockRatioProof(2, 5),
        depth=8,
        cover_depth=8,
        faults=(
            "a clock ratio drops the remainder at each tick",
            "a clock ratio ticks once too early in a round",
        ),
    ),
    Proof(
        name="clock_ratio_chosen",
        make=ChosenRatioProof,
        depth=8,
        cover_depth=10,
        faults=(
            "a clock ratio drops the remainder at each tick",
            "a clock ratio ticks once too early in a round",
        ),
    ),
)
