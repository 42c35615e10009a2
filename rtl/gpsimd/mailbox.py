"""The mailbox of a GPSIMD core: its registers, and the loads and stores that others answer."""

from amaranth.hdl import Module, Mux, Signal, Value, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.dma_port import SEMAPHORE_INDEX_BITS, SEMAPHORE_UPDATE
from rtl.base.fault import fault
from rtl.contract.config import Config
from rtl.contract.gpsimd import COPIES_MAX, Counter, Mailbox, cores, lanes
from rtl.contract.isa import Update
from rtl.gpsimd.layouts import DEVICE, Place
from rtl.gpsimd.waiting import TIME_BITS, Waiting

__all__ = ["CoreMailbox"]

_OFFSET_BITS = 14  # of a register
_ADDS = 15  # the bit of an address that SEMAPHORE_ADD has and SEMAPHORE_BASE has not


class CoreMailbox(wiring.Component):
    """Region.MAILBOX of a core, and its way to SBUF, shared memory, semaphores and the printer.

    Reset at the start of a run. i: a load or store, the next when the one before has been answered. reply, reply_valid:
    what a load finds, one cycle later or more. request: `held` waits for the bus; `served` ends a store, `answered` a
    load, later, with `answer`. turn: `value` is that of semaphore `index`, which `update` may change; what waits for a
    semaphore is looked at then. counter: which counter has `counter_value`. pending: timer and external interrupt.
    ended, trapped: DONE or TRAP is stored, with `result`; trap_pc: TRAP_PC. arrives: at a barrier. copies, copies_free:
    DMA_DONE and DMA_FREE; stores to DMA_PUSH go elsewhere. for_others: WAIT_COMPARE names a semaphore or the barrier.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__(
            {
                "core": In(3),
                "argument": In(1024),
                "mtime": In(TIME_BITS),
                "i": In(stream.Signature(DEVICE)),
                "reply": Out(32),
                "reply_valid": Out(1),
                "request": Out(1),
                "held": Out(DEVICE),
                "served": In(1),
                "answered": In(1),
                "answer": In(32),
                "turn": In(1),
                "index": Out(SEMAPHORE_INDEX_BITS),
                "value": In(signed(32)),
                "update": Out(stream.Signature(SEMAPHORE_UPDATE)),
                "barriers": In(signed(32)),
                "arrives": Out(1),
                "copies": In(32),
                "copies_free": In(range(COPIES_MAX + 1)),
                "counter": Out(range(len(Counter))),
                "counter_value": In(TIME_BITS),
                "pending": Out(2),
                "for_others": Out(1),
                "busy": Out(1),
                "ended": Out(1),
                "trapped": Out(1),
                "result": Out(32),
                "trap_pc": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.waiting = waiting = Waiting()
        access, held = self.i.payload.access, self.held.access
        offset = access.address[:_OFFSET_BITS]
        taken, outside, stores, loads = Signal(), Signal(), Signal(), Signal()
        status = ~access.write & (offset == Mailbox.WAIT_STATUS)
        m.d.comb += [
            self.i.ready.eq(~self.busy),
            taken.eq(self.i.valid & self.i.ready),
            outside.eq((self.i.payload.place != Place.REGISTER) | status | (access.write & (offset == Mailbox.PUT))),
            stores.eq(taken & ~outside & access.write),
            loads.eq(taken & ~outside & ~access.write),
            self.result.eq(access.data),
            self.ended.eq(stores & (offset == Mailbox.DONE)),
            self.trapped.eq(stores & (offset == Mailbox.TRAP)),
            self.arrives.eq(stores & (offset == Mailbox.BARRIER)),
        ]
        trap_value = Signal(32)
        with m.If(stores & (offset == Mailbox.TRAP_PC)):
            m.d.sync += self.trap_pc.eq(access.data)
        with m.If(stores & (offset == Mailbox.TRAP_VALUE)):
            m.d.sync += trap_value.eq(access.data)

        # what others answer; a semaphore, and whether a condition holds, at the core's turn
        sent, by_turn, ends = Signal(), Signal(), Signal()
        of_semaphore = self.held.place == Place.SEMAPHORE
        asks_status = (self.held.place == Place.REGISTER) & ~held.write
        with m.If(taken & outside):
            m.d.sync += [self.held.eq(self.i.payload), self.busy.eq(1)]
        m.d.comb += [
            by_turn.eq(self.busy & (of_semaphore | asks_status)),
            self.request.eq(self.busy & ~by_turn & ~sent),
            self.index.eq(Mux(self.busy & of_semaphore, held.address[2:10], waiting.semaphore)),
            self.update.valid.eq(by_turn & held.write & self.turn),
            self.update.payload.index.eq(held.address[2:10]),
            self.update.payload.update.eq(
                Mux(held.address[_ADDS] | fault("a core's set of a semaphore adds"), Update.ADD, Update.SET)
            ),
            self.update.payload.value.eq(held.data),
            ends.eq(by_turn & self.turn & (~held.write | self.update.ready)),
        ]
        with m.If(self.served & ~held.write):
            m.d.sync += sent.eq(1)
        with m.If(ends | self.answered | (self.served & held.write)):
            m.d.sync += [self.busy.eq(0), sent.eq(0)]

        m.d.comb += [
            waiting.store.eq(stores),
            waiting.offset.eq(offset),
            waiting.new.eq(access.data),
            waiting.mtime.eq(self.mtime),
            waiting.barriers.eq(self.barriers),
            waiting.copies.eq(self.copies),
            waiting.looked.eq(self.turn & ~(self.busy & of_semaphore)),
            waiting.value.eq(self.value),
            self.pending.eq(waiting.due | waiting.holds << 1),
            self.for_others.eq(waiting.for_others),
        ]
        answers, found, read = Signal(), Signal(32), Signal(32)
        self._read(m, read, offset, loads, trap_value, waiting)
        m.d.sync += [answers.eq(loads | (ends & ~held.write)), found.eq(read)]
        with m.If(by_turn):
            m.d.sync += found.eq(Mux(of_semaphore, self.value, waiting.now))
        m.d.comb += [
            self.reply_valid.eq(answers | self.answered),
            self.reply.eq(Mux(self.answered, self.answer, found)),
        ]
        return m

    def _read(self, m: Module, read: Value, offset: Value, loads: Value, trap_value: Value, waiting: Waiting) -> None:
        """What a load of a register finds: 0 where only stores go."""
        cfg = self.cfg
        time_high, high = Signal(TIME_BITS - 32), Signal(TIME_BITS - 32)  # of MTIME, and of a counter, loaded last
        counts = offset >= Mailbox.COUNTERS
        m.d.comb += self.counter.eq(offset[3:8])
        known: dict[Mailbox, Value | int] = {
            Mailbox.CORE: self.core,
            Mailbox.CORES: cores(cfg.partitions),
            Mailbox.LANES: lanes(cfg.partitions),
            Mailbox.LOCAL_BYTES: cfg.gpsimd.local_bytes,
            Mailbox.BARRIER: self.barriers,
            Mailbox.MTIME: self.mtime[:32],
            Mailbox.MTIMEH: time_high,
            Mailbox.MTIMECMP: waiting.mtimecmp[:32],
            Mailbox.MTIMECMPH: waiting.mtimecmp[32:],
            Mailbox.WAIT_SEMAPHORE: waiting.semaphore,
            Mailbox.WAIT_VALUE: waiting.wait_value,
            Mailbox.WAIT_COMPARE: waiting.compare,
            Mailbox.DMA_DONE: self.copies,
            Mailbox.DMA_FREE: self.copies_free,
            Mailbox.TRAP_PC: self.trap_pc,
            Mailbox.TRAP_VALUE: trap_value,
        }
        with m.Switch(offset):
            for register, value in known.items():
                with m.Case(register):
                    m.d.comb += read.eq(value)
            with m.Default():
                with m.If(counts):
                    m.d.comb += read.eq(Mux(offset[2], high, self.counter_value[:32]))
                with m.Elif(offset < Mailbox.CORE):
                    m.d.comb += read.eq(self.argument.word_select(offset[2:7], 32))
        with m.If(loads & (offset == Mailbox.MTIME)):
            m.d.sync += time_high.eq(self.mtime[32:])
        with m.Elif(loads & counts & ~offset[2]):
            m.d.sync += high.eq(self.counter_value[32:])
