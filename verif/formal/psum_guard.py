"""Guard and BankWatch: what keeps the sums of two instructions from meeting in PSUM (proof psum assumes it).

Guard: no beat goes to an element that one of the PSUM_ADD_CYCLES beats' time before it adds to, and none is held up
without that. The walker is left out: destinations are anything. That sums leave the array in the order and at the
distance of their beats is for the benches of the array.
BankWatch: an instruction clashes exactly if one that is under way with another exit writes one of its banks. Its banks
are all in which an element of its destination lies.
"""

from amaranth.asserts import AnySeq
from amaranth.hdl import Array, Assert, Assume, Cat, Cover, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.base.layouts import PATTERN_LAYOUT
from rtl.contract.access_pattern import DIMENSIONS
from rtl.contract.config import Config
from rtl.contract.timing import PSUM_ADD_CYCLES
from rtl.tensor.bank_watch import BankWatch
from rtl.tensor.guard import Guard
from verif.formal.arbiter import ones
from verif.formal.free import StandIn, drive
from verif.formal.proof import Proof, without_reset
from verif.formal.psum import SMALL

__all__ = ["PROOFS", "BanksProof", "GuardProof", "WatchProof"]

_SLOTS = 3


class AnyWalker(wiring.Component):
    """Stands in for PatternWalker: any address after any step."""

    def __init__(self, cfg: Config):
        bits = ceil_log2(max(cfg.sbuf.partition_bytes, cfg.psum.partition_bytes))
        super().__init__({"command": In(stream.Signature(PATTERN_LAYOUT)), "step": In(1), "address": Out(bits)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.command.ready.eq(1)
        with m.If(self.step):
            m.d.sync += self.address.eq(AnySeq(len(self.address)))
        return m


class GuardProof(wiring.Component):
    """Steps whenever it is not blocked, or later."""

    def __init__(self):
        self.guard = Guard(SMALL)
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        guard = self.guard
        walkers: list[AnyWalker] = []

        def walker(cfg: Config) -> AnyWalker:
            walkers.append(AnyWalker(cfg))
            return walkers[-1]

        m.submodules.guard = StandIn(guard, PatternWalker=walker).elaborate(platform)
        without_reset(m)
        drive(m, guard.command.valid)
        address = walkers[0].address
        m.d.comb += guard.step.eq(AnySeq(1) & ~guard.blocked)
        recent: list[Value] = []
        used, at = guard.step, address
        for age in range(PSUM_ADD_CYCLES):
            was, where = Signal(name=f"was_{age}"), Signal.like(address, name=f"where_{age}")
            m.d.sync += [was.eq(used), where.eq(at)]
            recent.append(was & (where == address))
            used, at = was, where
        m.d.comb += [
            Assert(~(guard.step & Cat(recent).any())),
            Assert(guard.blocked == Cat(recent).any()),
            Cover(guard.blocked & recent[PSUM_ADD_CYCLES - 1]),
            Cover(guard.step & (used & (at != address))),
        ]
        return m


class WatchProof(wiring.Component):
    """Up to three instructions under way, that leave in any order."""

    def __init__(self):
        self.watch = BankWatch(SMALL, _SLOTS)
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        watch = self.watch
        m.submodules.watch = watch
        without_reset(m)
        drive(m, watch.pattern)
        drive(m, watch.exit)
        busy = Signal(_SLOTS)
        exits = [Signal.like(watch.exit, name=f"exit_{n}") for n in range(_SLOTS)]
        banks = [Signal.like(watch.banks, name=f"banks_{n}") for n in range(_SLOTS)]
        enters, leaves = Signal(range(_SLOTS)), Signal(range(_SLOTS))
        drive(m, enters)
        drive(m, leaves)
        m.d.comb += [
            Assume((enters < _SLOTS) & (leaves < _SLOTS)),
            watch.enter.eq(AnySeq(1) & ~busy.bit_select(enters, 1)),
            watch.leave.eq(AnySeq(1) & busy.bit_select(leaves, 1)),
            watch.leave_exit.eq(Array(exits)[leaves]),
            watch.leave_banks.eq(Array(banks)[leaves]),
        ]
        for n in range(_SLOTS):
            with m.If(watch.enter & (enters == n)):
                m.d.sync += [busy[n].eq(1), exits[n].eq(watch.exit), banks[n].eq(watch.banks)]
            with m.If(watch.leave & (leaves == n)):
                m.d.sync += busy[n].eq(0)
        meets = Cat(busy[n] & (exits[n] != watch.exit) & (banks[n] & watch.banks).any() for n in range(_SLOTS))
        m.d.comb += Assert(watch.clash == meets.any())
        for b, row in enumerate(watch.used):  # for the induction
            for e, used in enumerate(row):
                m.d.comb += Assert(used == ones(Cat(busy[n] & (exits[n] == e) & banks[n][b] for n in range(_SLOTS))))
        m.d.comb += [
            Cover(watch.clash & busy.all()),
            Cover(~watch.clash & busy.all() & watch.banks.all() & (watch.exit == 3)),
        ]
        return m


class BanksProof(wiring.Component):
    """Any element of any pattern that lies inside PSUM, as issue makes sure of."""

    def __init__(self):
        self.watch = BankWatch(SMALL, _SLOTS)
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        watch = self.watch
        m.submodules.watch = watch
        without_reset(m)
        elements = SMALL.psum.partition_bytes // 4
        in_bank = SMALL.psum.bank_bytes // 4
        pattern = watch.pattern
        drive(m, pattern)
        low: Value = pattern.offset[2:]
        high, element = low, low
        for k in range(DIMENSIONS):
            step, most = Signal(7, name=f"step_{k}").as_signed(), Signal(5, name=f"most_{k}")
            index = Signal(5, name=f"index_{k}")
            drive(m, index)
            # a step beyond PSUM has no second element
            m.d.comb += [
                Value.cast(step).eq(pattern[f"step{k}"]),
                most.eq(pattern[f"count{k}"] - 1),
                Assume((pattern[f"step{k}"] == step) & (pattern[f"count{k}"] == most + 1) & (index <= most)),
            ]
            span = Signal(13, name=f"span_{k}").as_signed()
            m.d.comb += Value.cast(span).eq(step * most)
            low = low + Mux(span < 0, span, 0)
            high = high + Mux(span < 0, 0, span)
            element = element + step * index
        m.d.comb += [
            Assume((pattern.offset[2:] < elements) & (low >= 0) & (high < elements)),
            Assert((element >= 0) & (element < elements)),
        ]
        for b in range(SMALL.psum.banks):
            inside = (element >= b * in_bank) & (element < (b + 1) * in_bank)
            m.d.comb += Assert(watch.banks[b] | ~inside)
        m.d.comb += [Cover(watch.banks.all() & (pattern.count1 == 3)), Cover(watch.banks == 2)]
        return m


PROOFS = (
    Proof(
        name="psum_guard",
        make=GuardProof,
        depth=4,
        cover_depth=8,
        fault_depth=8,
        faults=("an element may recur inside the adder",),
        short=True,
    ),
    Proof(
        name="psum_watch",
        make=WatchProof,
        depth=2,
        cover_depth=8,
        fault_depth=8,
        faults=("a bank is free when the first of its matmuls has retired",),
        short=True,
    ),
    Proof(
        name="psum_banks",
        make=BanksProof,
        depth=1,
        cover_depth=2,
        fault_depth=2,
        faults=(
            "banks behind that of the first element are not watched",
            "of a pattern that goes down the banks behind its first element are watched",
        ),
    ),
)
