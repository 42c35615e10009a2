"""The scheduler of a switch, 4 ports and the responder, any input whatever.

Its grants are a matching of pairs that asked and were not blocked, and units are held to their end; an urgent pair
begins within a unit; every pair that keeps asking becomes urgent or is served within two walks over the diagonals.
"""

from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Array, Assert, Assume, Cat, Cover, Module, Mux, Signal
from amaranth.lib import wiring

from rtl.contract.link import UNIT_FLITS_MAX
from rtl.contract.link_config import LinkConfig
from rtl.contract.switch_config import SwitchConfig
from rtl.switch.scheduling.patience import Patience
from rtl.switch.scheduling.scheduler import Scheduler
from verif.formal.proof import Proof, without_reset

__all__ = ["PROOFS", "GrantsProof", "PatienceProof", "UrgentProof"]


def _cfg(matching: str, *, strict: int = -1) -> SwitchConfig:
    link = LinkConfig(lanes=16, classes=2, strict_class=strict, weights=(2, 1, 1, 1, 1, 1, 1, 1))
    return SwitchConfig(ports=4, link=link, matching=matching, keep_slots=2, length_cap_flits=3)


class _Slots(wiring.Component):
    """A scheduler with free inputs, and what it captured."""

    def __init__(self, cfg: SwitchConfig):
        self.cfg = cfg
        self.scheduler = Scheduler(cfg, visit=1, strict=1)  # so that a short run sees the urgent
        n = cfg.inputs
        self.begins = Signal()  # first cycle of a slot
        self.asked = [Signal(n * cfg.link.queues, name=f"asked_{i}") for i in range(n)]
        self.held = Signal(n)
        self.held_output = [Signal(range(n), name=f"held_output_{i}") for i in range(n)]
        self.blocked_inputs, self.blocked_outputs = Signal(n), Signal(n)
        self.known = Signal()  # a slot has been captured
        super().__init__({})

    def slots(self, m: Module) -> None:
        """Slots of two cycles and what is true in each."""
        s, n = self.scheduler, self.cfg.inputs
        m.submodules.scheduler = s
        without_reset(m)
        phase = Signal()
        m.d.sync += phase.eq(~phase)
        m.d.comb += [
            self.begins.eq(~phase),
            s.slot.eq(~phase),
            *(lists.eq(AnySeq(n * self.cfg.link.queues)) for lists in s.lists),
            *(lengths.eq(AnySeq(len(lengths.as_value()))) for lengths in s.lengths),
            s.more.eq(AnySeq(n)),
            s.ready.eq(AnySeq(len(s.ready))),
            s.blocked_inputs.eq(AnySeq(n)),
            s.blocked_outputs.eq(AnySeq(n)),
        ]
        with m.If(self.begins):
            m.d.sync += [self.held.eq(s.start & s.more), self.known.eq(1)]
            m.d.sync += [self.asked[i].eq(s.lists[i] & s.ready) for i in range(n)]
            m.d.sync += [self.held_output[i].eq(s.out_port[i]) for i in range(n)]
        with m.Else():
            m.d.sync += [
                self.blocked_inputs.eq(s.blocked_inputs),
                self.blocked_outputs.eq(s.blocked_outputs),
            ]

    def matching(self, m: Module) -> None:
        """Inputs and outputs name each other: at most one grant a row and a column, in every cycle."""
        s, n = self.scheduler, self.cfg.inputs
        out_port, select = Array(s.out_port), Array(s.select)
        for k in range(n):
            m.d.comb += [
                Assert(
                    ~s.start[k]
                    | ((s.out_port[k] < n) & s.valid.bit_select(s.out_port[k], 1) & (select[s.out_port[k]] == k))
                ),
                Assert(
                    ~s.valid[k]
                    | ((s.select[k] < n) & s.start.bit_select(s.select[k], 1) & (out_port[s.select[k]] == k))
                ),
            ]


class GrantsProof(_Slots):
    """Grants are a matching; who begins has asked; who is held goes on; nobody uses what is blocked."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        s, n, queues = self.scheduler, self.cfg.inputs, self.cfg.link.queues
        self.slots(m)
        self.matching(m)
        m.d.comb += Assert((s.first & ~s.start) == 0)
        now = self.begins & self.known
        with m.If(now):
            for i in range(n):
                asked = self.asked[i].bit_select(s.out_port[i] * queues + s.queue[i], 1)
                m.d.comb += [
                    Assert(~s.first[i] | (asked & ~self.held[i] & ~self.blocked_inputs[i])),
                    Assert((s.start[i] & ~s.first[i]) == self.held[i]),
                    Assert(~self.held[i] | (s.out_port[i] == self.held_output[i])),
                    Assert(~s.granted[i] | (s.valid[i] & ~self.blocked_outputs[i])),
                    Assert(~s.granted[i] | (Array(s.queue)[s.select[i]] == s.granted_queue[i])),
                ]
        m.d.comb += [
            Cover(now & s.first.all()),
            Cover(now & (self.held == 3) & (s.first == 4)),
        ]
        return m


class UrgentProof(_Slots):
    """An urgent pair begins at most UNIT_FLITS_MAX slots later, if units are that long and nothing is blocked.

    With a strict class: at most so long after it goes before strict units.
    """

    def elaborate(self, platform: object) -> Module:
        m = Module()
        s, n = self.scheduler, self.cfg.inputs
        self.slots(m)
        self.matching(m)
        i, o = Signal(range(n)), Signal(range(n))
        m.d.comb += [i.eq(AnyConst(3)), o.eq(AnyConst(3)), Assume(i < n), Assume(o < n)]
        sent = [Signal(range(UNIT_FLITS_MAX + 1), name=f"sent_{k}") for k in range(n)]  # flits of the unit under way
        ages = [Signal(range(UNIT_FLITS_MAX + 2), name=f"age_{k}") for k in range(n)]  # with that of this slot
        m.d.comb += [Assume(s.blocked_inputs == 0), Assume(s.blocked_outputs == 0)]
        for k in range(n):
            m.d.comb += ages[k].eq(Mux(s.start[k], Mux(s.first[k], 1, sent[k] + 1), 0))
            with m.If(self.begins):
                m.d.comb += Assume(~s.more[k] | (s.start[k] & (ages[k] < UNIT_FLITS_MAX)))
                m.d.sync += sent[k].eq(ages[k])
        patience = s.patience
        urgent = Signal()
        m.d.comb += urgent.eq(
            patience.urgent.bit_select(o, 1) & Array(patience.pair)[o].bit_select(i, 1) & ~self.begins & self.known
        )
        if self.cfg.link.strict_class >= 0:
            urgent = urgent & patience.before_strict
        waits = Signal(range(UNIT_FLITS_MAX + 1))  # slots that it has been urgent and has not begun
        with m.If(~self.begins):
            goes = Array(patience.began)[o].bit_select(i, 1)
            m.d.sync += waits.eq(Mux(urgent & ~goes, waits + 1, 0))
        m.d.comb += Assert(waits < UNIT_FLITS_MAX)
        # units in the way only grow older: nobody else begins at either end
        with m.If((waits != 0) & self.begins):
            m.d.comb += [
                Assert(~s.start.bit_select(i, 1) | ~s.first.bit_select(i, 1)),
                Assert(~s.valid.bit_select(o, 1) | ~s.granted.bit_select(o, 1)),
            ]
        for k in range(n):
            end = (i == k) | (s.valid.bit_select(o, 1) & (Array(s.select)[o] == k))
            age = Mux(self.begins, ages[k], sent[k])
            m.d.comb += Assert((waits == 0) | ~s.start[k] | ~end | (age > waits))
        m.d.comb += Cover(urgent & (waits == 1))
        return m


class PatienceProof(wiring.Component):
    """A pair that asks all the time begins within two walks, if every urgent pair begins within `late` slots."""

    COUNT, VISIT, LATE = 4, 2, 2

    def __init__(self):
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        n = self.COUNT
        m.submodules.patience = p = Patience(n, visit=self.VISIT, strict=self.LATE)
        without_reset(m)
        i, o = Signal(range(n)), Signal(range(n))
        m.d.comb += [i.eq(AnyConst(2)), o.eq(AnyConst(2)), p.step.eq(1)]
        m.d.comb += [vector.eq(AnySeq(n)) for vector in (*p.asks, *p.began)]
        asks, began = Array(p.asks)[o].bit_select(i, 1), Array(p.began)[o].bit_select(i, 1)
        overdue = Signal(range(self.LATE + 1))
        served = Cat((p.pair[k] & p.began[k]).any() for k in range(n))
        left = p.urgent & ~served
        m.d.sync += overdue.eq(Mux(left.any(), overdue + 1, 0))
        m.d.comb += Assume(~((overdue == self.LATE - 1) & left.any()))
        bound = 2 * n * (self.VISIT + self.LATE)
        waits = Signal(range(bound + 2))
        m.d.sync += waits.eq(Mux(asks & ~began, waits + 1, 0))
        m.d.comb += [
            Assert(waits <= bound),
            Assert((overdue == 0) | (p.slots >= self.VISIT)),
            Assert(p.diagonal < n),
            Assert(p.visits < n),
            Assert(p.walk < len(p.strides)),
            Cover(waits == n),
        ]
        return m


PROOFS = (
    *(
        Proof(
            name=f"switch_grants_{matching}",
            make=lambda matching=matching: GrantsProof(_cfg(matching)),
            depth=4,
            cover_depth=12,
            fault_depth=12,
            faults=faults,
        )
        for matching, faults in (
            (
                "merged",
                (
                    "the order of the inputs is not undone",
                    "a unit holds its input and output for ever",
                    "what is blocked is scheduled",
                ),
            ),
            (
                "islip",
                (
                    "a unit holds its input and output for ever",
                    "what is blocked is scheduled",
                ),
            ),
        )
    ),
    *(
        Proof(
            name=name,
            make=lambda strict=strict: UrgentProof(_cfg("merged", strict=strict)),
            depth=4,
            cover_depth=14,
            fault_depth=18,
            faults=("nothing is kept free for who waits",),
        )
        for name, strict in (("switch_urgent", -1), ("switch_urgent_strict", 1))
    ),
    Proof(
        name="switch_patience",
        make=PatienceProof,
        depth=2 * PatienceProof.COUNT * (PatienceProof.VISIT + PatienceProof.LATE) + 2,
        cover_depth=10,
        fault_depth=40,
        faults=("a starved pair never becomes urgent",),
    ),
)
