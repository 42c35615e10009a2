"""The order of things in the tensor engine: who gets a command, what it waits for, when it retires."""

from amaranth.hdl import Cat, Module, Mux, Signal, ValueLike
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.dispatch import COMMAND
from rtl.base.fifo import RamFifo
from rtl.base.layouts import PATTERN_LAYOUT
from rtl.base.pattern import operand
from rtl.base.plant import planted
from rtl.contract.config import Config
from rtl.contract.isa import Opcode
from rtl.tensor.drain import DRAIN_COMMAND, matmuls_in_flight
from rtl.tensor.feed import ORDER_BITS, feed_command

__all__ = ["Sequencer"]


class Sequencer(wiring.Component):
    """Hands LOAD_STATIONARY to `load` and MULTIPLY_MOVING to `stream`, `target` and
    `drain`, in order.

    A stream swaps if a load came since the stream before it; it then awaits the number of loads accepted
    so far, and a load awaits the number of swapping streams accepted before it. `load_sent` and `swapped`
    count towards `loads` and `swaps`, which the feeds compare; all counts wrap.
    `done` pulses once a command in program order: a load when sent, a matmul when `matmul_done`. `pending`:
    a command has not retired.
    """

    FAULTS = {
        51: "a load retires before the matmul in front of it",
        52: "a second load in a row takes the swap back",
    }

    def __init__(self, cfg: Config, plant: ValueLike = 0):
        self.cfg = cfg
        self.plant = plant
        super().__init__(
            {
                "command": In(stream.Signature(COMMAND)),
                "load": Out(stream.Signature(feed_command())),
                "stream": Out(stream.Signature(feed_command())),
                "target": Out(stream.Signature(PATTERN_LAYOUT)),
                "drain": Out(stream.Signature(DRAIN_COMMAND)),
                "load_sent": In(1),
                "swapped": In(1),
                "matmul_done": In(1),
                "loads": Out(ORDER_BITS),
                "swaps": Out(ORDER_BITS),
                "done": Out(1),
                "pending": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        depth = 2 * matmuls_in_flight(self.cfg)
        m.submodules.order = order = RamFifo(1, depth)  # 1: a matmul
        word = self.command.payload.word
        is_matmul = Signal()
        loads_accepted = Signal(ORDER_BITS)
        swaps_accepted = Signal(ORDER_BITS)
        loaded = Signal()  # since the last matmul
        accept = Signal()

        matmul_ready = self.stream.ready & self.target.ready & self.drain.ready
        m.d.comb += [
            is_matmul.eq(word.opcode == Opcode.MULTIPLY_MOVING),
            self.command.ready.eq(order.i.ready & Mux(is_matmul, matmul_ready, self.load.ready)),
            accept.eq(self.command.valid & self.command.ready),
            self.load.valid.eq(accept & ~is_matmul),
            self.stream.valid.eq(accept & is_matmul),
            self.target.valid.eq(accept & is_matmul),
            self.drain.valid.eq(accept & is_matmul),
            order.i.valid.eq(accept),
            order.i.payload.eq(is_matmul),
            self.target.payload.eq(operand(word, "dst")),
            self.drain.payload.pattern.eq(operand(word, "dst")),
            self.drain.payload.accumulate.eq(word.accumulate),
        ]
        for target, awaited in ((self.load, swaps_accepted), (self.stream, loads_accepted)):
            m.d.comb += [
                target.payload.pattern.eq(operand(word, "src0")),
                target.payload.scales.eq(operand(word, "src1")),
                target.payload.kind.eq(word.kind),
                target.payload.map.eq(Cat(word.imm0, word.imm1)),
                target.payload.sequence.eq(self.command.payload.sequence),
                target.payload.awaits.eq(awaited),
            ]
        m.d.comb += self.stream.payload.swap.eq(loaded)
        with m.If(accept & is_matmul):
            m.d.sync += [loaded.eq(0), swaps_accepted.eq(swaps_accepted + loaded)]
        with m.If(accept & ~is_matmul):
            m.d.sync += [loaded.eq(~(loaded & planted(self.plant, 52))), loads_accepted.eq(loads_accepted + 1)]
        m.d.sync += [self.loads.eq(self.loads + self.load_sent), self.swaps.eq(self.swaps + self.swapped)]

        # retirement: what has finished and was not reported
        loads_finished = Signal(range(depth + 2))
        matmuls_finished = Signal(range(depth + 2))
        retire_matmul = Signal()
        retire_load = Signal()
        m.d.comb += [
            retire_matmul.eq(order.o.valid & order.o.payload & (matmuls_finished != 0)),
            retire_load.eq(order.o.valid & ~order.o.payload & (loads_finished != 0)),
            self.done.eq(retire_matmul | retire_load),
            order.o.ready.eq(retire_matmul | retire_load),
            self.pending.eq(order.level != 0),
        ]
        with m.If(planted(self.plant, 51)):
            m.d.comb += self.done.eq(self.load_sent | self.matmul_done)
        m.d.sync += [
            loads_finished.eq(loads_finished + self.load_sent - retire_load),
            matmuls_finished.eq(matmuls_finished + self.matmul_done - retire_matmul),
        ]
        return m
