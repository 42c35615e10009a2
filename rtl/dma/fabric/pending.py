"""Order at an endpoint: which writes have not committed, and the signals that wait for them."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.dma_port import SEMAPHORE_UPDATE
from rtl.base.fault import fault
from rtl.contract.link import CLASSES
from rtl.dma.fabric.packets import SLOT_BITS, SLOTS_EACH

__all__ = ["Pending"]

_DEPTH = 4


class Pending(wiring.Component):
    """`write` opens the write in `slot`, of class `class_`; `commit` closes the one in `commit_slot`.

    `signal`: goes out at `o`, in order, when all writes of `signal_class` that were open when it was taken have
    been closed. After a write that HBM refused (`commit_error`) the signals of its class are dropped until `clear`,
    a cycle before that of the error at the latest.
    `open`: classes with a write that has not committed, registers only. `dropped` pulses for a signal.
    Timing: a signal goes out the cycle after the last commit at the earliest.
    """

    def __init__(self):
        super().__init__(
            {
                "clear": In(1),
                "write": In(1),
                "slot": In(SLOT_BITS),
                "class_": In(3),
                "commit": In(1),
                "commit_slot": In(SLOT_BITS),
                "commit_error": In(1),
                "signal": In(stream.Signature(SEMAPHORE_UPDATE)),
                "signal_class": In(3),
                "o": Out(stream.Signature(SEMAPHORE_UPDATE)),
                "open": Out(CLASSES),
                "dropped": Out(1),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        opened = Signal(SLOTS_EACH)
        classes = Array(Signal(3, name=f"class_of{n}") for n in range(SLOTS_EACH))
        closing = Signal(SLOTS_EACH)
        broken = Signal(CLASSES)  # a write of it has failed
        m.d.comb += closing.eq(Mux(self.commit, 1 << self.commit_slot, 0))
        m.d.sync += opened.eq((opened & ~closing) | Mux(self.write, 1 << self.slot, 0))
        with m.If(self.write):
            m.d.sync += classes[self.slot].eq(self.class_)
        of_class = [Cat(opened[n] & (classes[n] == c) for n in range(SLOTS_EACH)) for c in range(CLASSES)]
        m.d.comb += self.open.eq(Cat(some.any() for some in of_class))
        with m.If(self.clear & ~fault("a failed class of an endpoint stays failed")):
            m.d.sync += broken.eq(0)
        hidden = self.clear & fault("a clear hides a write that fails in its cycle")
        with m.If(self.commit & self.commit_error & ~hidden):
            m.d.sync += broken.bit_select(classes[self.commit_slot], 1).eq(1)

        entry = data.StructLayout({"update": SEMAPHORE_UPDATE, "class_": 3, "awaited": SLOTS_EACH})
        entries = [Signal(entry, name=f"entry{n}") for n in range(_DEPTH)]
        used = Signal(range(_DEPTH + 1))
        first = entries[0]
        enter = Signal()
        leave = Signal()
        dead = Signal()
        m.d.comb += [
            self.signal.ready.eq(used != _DEPTH),
            enter.eq(self.signal.valid & self.signal.ready),
            dead.eq(broken.bit_select(first.class_, 1)),
            self.o.valid.eq(
                (used != 0)
                & ((first.awaited == 0) | fault("a signal to an endpoint does not wait for the writes before it"))
                & ~dead
            ),
            self.o.payload.eq(first.update),
            self.dropped.eq((used != 0) & (first.awaited == 0) & dead),
            leave.eq((self.o.valid & self.o.ready) | self.dropped),
            self.busy.eq((used != 0) | opened.any()),
        ]
        m.d.sync += used.eq(used + enter - leave)
        fresh = Signal(entry)
        m.d.comb += [
            fresh.update.eq(self.signal.payload),
            fresh.class_.eq(self.signal_class),
            fresh.awaited.eq(Array(of_class)[self.signal_class] & ~closing),
        ]
        for n, here in enumerate(entries):
            following = entries[n + 1] if n + 1 < _DEPTH else here
            with m.If(enter & (used - leave == n)):
                m.d.sync += here.eq(fresh)
            with m.Elif(leave):
                m.d.sync += [here.eq(following), here.awaited.eq(following.awaited & ~closing)]
            with m.Else():
                m.d.sync += here.awaited.eq(here.awaited & ~closing)
        return m
