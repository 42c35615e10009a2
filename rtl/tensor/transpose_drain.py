"""From transposes to PSUM: which instruction a row that leaves the array belongs to, and where it goes."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.base.fault import fault
from rtl.base.fifo import RamFifo
from rtl.base.layouts import PATTERN_LAYOUT
from rtl.base.memory_port import PsumTransposeSignature, psum_element_bits
from rtl.base.pattern import PatternWalker, partition_mask
from rtl.contract.config import Config
from rtl.tensor.ports import sum_row

__all__ = ["TransposeDrain"]

_COMMANDS = 16  # as many as may be dispatched and not retired


class TransposeDrain(wiring.Component):
    """Sends each row that a row group shifts out to PSUM, along the destination pattern of its TENSOR_TRANSPOSE.

    `command` is that pattern; its elements are the rows of the operand, the last one first. `done` pulses in the cycle
    after the last row, which has committed then, in order. `busy`: an instruction has not finished.
    Timing: a row goes on in the cycle in which it leaves the array, bit for bit, and is never held up.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__(
            {
                "command": In(stream.Signature(PATTERN_LAYOUT)),
                "rows": In(sum_row(cfg)),
                "psum": Out(PsumTransposeSignature(cfg)),
                "done": Out(1),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        m.submodules.waiting = waiting = RamFifo(PATTERN_LAYOUT, _COMMANDS)
        m.submodules.walker = walker = PatternWalker(cfg)
        connect(m, flipped(self.command), waiting.i)
        connect(m, waiting.o, walker.command)
        columns = Signal(cfg.tensor.cols)
        following = waiting.o.payload
        with m.If(walker.command.valid & walker.command.ready):
            count = (following.partition_count - fault("the last column of a transpose is not written"))[:8]
            m.d.sync += columns.eq(partition_mask(following.partition_start, count, cfg.tensor.cols))
        begun = Signal()  # planted: a row has left
        with m.If(self.rows.valid):
            m.d.sync += begun.eq(~walker.last)
        ends = self.rows.valid & (
            (walker.last & ~fault("a transpose is done with its first row"))
            | (~begun & fault("a transpose is done with its first row"))
        )
        m.d.sync += self.done.eq(ends)
        m.d.comb += [
            walker.step.eq(self.rows.valid),
            self.psum.valid.eq(self.rows.valid),
            self.psum.element.eq(walker.address[2:][: psum_element_bits(cfg)]),
            self.psum.partitions.eq(columns),
            self.psum.data.eq(self.rows.data),
            self.busy.eq(waiting.o.valid | walker.valid | self.done),
        ]
        return m
