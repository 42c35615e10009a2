"""The read side of a pool: flits of the unit under way, one a slot, or one behind the other."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from rtl.base.fault import fault
from rtl.contract.link import UNIT_FLITS_MAX
from rtl.contract.link_config import LinkConfig
from rtl.switch.input.unit_record import record_layout, slot_layout

__all__ = ["UnitSender"]


class UnitSender(wiring.Component):
    """`start` in the cycle of `slot`: a flit begins; `first`: of a new unit, else of the unit under way.

    `now`: a new unit begins in this cycle, whose flits follow one behind the other, without slots. `pop` asks for a
    unit of `queue`; if one is `taken`, it is `record`.
    `read`: beat `beat` of the flit at `index` is wanted; `head`, `tail`: where that flit is in its unit.
    `sent`: the flit of `sent_slot` begins. It may be freed at once: whatever is written over it comes later, in order.
    `more`: behind what begins in this cycle, flits of the unit under way wait for slots. `sending`: beats are read in
    this cycle, but for those of a unit that `now` begins. `ends`: the last beat of a unit is read.
    `under_way`: flits of a unit had not begun before this cycle.
    """

    def __init__(self, cfg: LinkConfig):
        self.cfg = cfg
        pool = cfg.pool_flits
        super().__init__(
            {
                "slot": In(1),
                "start": In(1),
                "first": In(1),
                "now": In(1),
                "queue": In(range(cfg.queues)),
                "pop": Out(1),
                "taken": In(1),
                "record": In(record_layout(pool)),
                "read": Out(1),
                "beat": Out(range(cfg.beats)),
                "index": Out(bits_for(pool - 1)),
                "head": Out(1),
                "tail": Out(1),
                "sent": Out(1),
                "sent_slot": Out(slot_layout(pool)),
                "sent_queue": Out(range(cfg.queues)),
                "more": Out(1),
                "sending": Out(1),
                "under_way": Out(1),
                "ends": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        unit = Signal(record_layout(cfg.pool_flits))
        flit = Signal(range(UNIT_FLITS_MAX + 1))  # of `unit`, that begins next
        beat = Signal(range(cfg.beats))  # 0: the next one is that of a new flit
        index, head, tail = Signal.like(self.index), Signal(), Signal()  # of the flit under way
        queue = Signal.like(self.queue)
        fast = Signal()
        open_ = flit != unit.flits
        begins, goes_on, follows, remains = Signal(), Signal(), Signal(), Signal()
        slot = Signal(slot_layout(cfg.pool_flits))
        m.d.comb += [
            self.pop.eq(self.slot & self.start & self.first | self.now),
            goes_on.eq(self.slot & self.start & ~self.first & open_),
            follows.eq(
                fast
                & open_
                & (beat == 0)
                & (self.slot | ~fault("flits of a unit that was begun at once wait for a slot"))
            ),
            begins.eq(self.taken | goes_on | follows),
            remains.eq(
                Mux(
                    self.taken,
                    (self.record.flits != 1) & ~fault("more is told of a unit only when its second flit has begun"),
                    open_ & ~((goes_on | follows) & (flit + 1 == unit.flits)),
                )
            ),
            self.more.eq(
                remains
                & (
                    fault("flits of a unit that was begun at once are told to wait for slots")
                    | ~Mux(self.taken, self.now, fast)
                )
            ),
            self.sending.eq((beat != 0) | self.slot & self.start | follows),
            self.under_way.eq(open_),
            self.ends.eq((beat == cfg.beats - 1) & tail),
            slot.eq(Mux(self.taken, self.record.slots[0], unit.slots[flit[:2]])),
            self.sent.eq(begins),
            self.sent_slot.eq(slot),
            self.sent_queue.eq(Mux(self.taken, self.queue, queue)),
            self.read.eq(begins | (beat != 0)),
            self.beat.eq(beat),
            self.index.eq(Mux(begins, slot.index, index)),
            self.head.eq(Mux(begins, self.taken, head)),
            self.tail.eq(Mux(begins, ~remains, tail)),
        ]
        with m.If(fault("the second flit of a unit is sent in the place of the third") & ~self.taken & (flit == 2)):
            m.d.comb += self.index.eq(unit.slots[1].index)
        with m.If(self.read):
            m.d.sync += beat.eq(beat + 1)
        with m.If(begins):
            m.d.sync += [index.eq(slot.index), head.eq(self.head), tail.eq(self.tail), flit.eq(flit + 1)]
        with m.If(self.taken):
            m.d.sync += [unit.eq(self.record), flit.eq(1), queue.eq(self.queue), fast.eq(self.now)]
        return m
