"""From sums to PSUM: which matmul a row of sums belongs to, where it goes, and when it has committed."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from rtl.base.dispatch import SEQUENCE_BITS
from rtl.base.fault import fault
from rtl.base.fifo import RamFifo
from rtl.base.layouts import PATTERN_LAYOUT
from rtl.base.memory_port import PsumAccumulateSignature, psum_element_bits
from rtl.base.pattern import PatternWalker, partition_mask
from rtl.contract.config import Config
from rtl.contract.isa import Rounding
from rtl.contract.timing import MATMUL_MIN_CYCLES, PSUM_ADD_CYCLES, array_latency
from rtl.numeric.fp32.round_bits import BITS, RoundBits
from rtl.tensor.feed_command import ORDER_BITS
from rtl.tensor.ports import sum_row

__all__ = ["DRAIN_COMMAND", "Drain", "matmuls_in_flight"]

DRAIN_COMMAND = data.StructLayout(
    {"pattern": PATTERN_LAYOUT, "accumulate": 1, "rounding": 2, "seed": BITS, "sequence": SEQUENCE_BITS}
)


def matmuls_in_flight(cfg: Config) -> int:
    """Matmuls that may be accepted and not drained: the shortest fill the array, and those in the feed."""
    return 1 << ceil_log2(array_latency(cfg.tensor) // MATMUL_MIN_CYCLES + (1 << ORDER_BITS))


class Drain(wiring.Component):
    """Sends each row of sums of a row group to PSUM, at the address that the destination pattern of its matmul gives.

    `done` pulses when the last row of a matmul commits, in order; with `failed` if one of its rows was lost.
    `busy`: a matmul has not finished.
    Timing: a row goes on in the cycle in which it leaves the array, and is never held up.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        super().__init__(
            {
                "command": In(stream.Signature(DRAIN_COMMAND)),
                "sums": In(sum_row(cfg)),
                "psum": Out(PsumAccumulateSignature(cfg)),
                "done": Out(1),
                "failed": Out(1),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        m.submodules.waiting = waiting = RamFifo(DRAIN_COMMAND, matmuls_in_flight(cfg))
        m.submodules.walker = walker = PatternWalker(cfg)
        connect(m, flipped(self.command), waiting.i)

        m.submodules.bits = bits = RoundBits()
        accumulate = Signal()
        rounding = Signal(2)
        seed = Signal(BITS)
        sequence = Signal(SEQUENCE_BITS)
        element = Signal(16)  # of the matmul
        columns = Signal(cfg.tensor.cols)
        following = waiting.o.payload
        m.d.comb += [
            walker.command.valid.eq(waiting.o.valid),
            walker.command.payload.eq(following.pattern),
            waiting.o.ready.eq(walker.command.ready),
            walker.step.eq(self.sums.valid),
        ]
        with m.If(self.sums.valid):
            m.d.sync += element.eq(element + 1)
        with m.If(walker.command.valid & walker.command.ready):
            count = (following.pattern.partition_count - fault("the last column of sums is not written"))[:8]
            m.d.sync += [
                accumulate.eq(following.accumulate & ~fault("every matmul overwrites its sums")),
                rounding.eq(following.rounding),
                seed.eq(following.seed),
                sequence.eq(following.sequence),
                element.eq(0),
                columns.eq(partition_mask(following.pattern.partition_start, count, cfg.tensor.cols)),
            ]
        m.d.comb += [
            self.psum.valid.eq(self.sums.valid),
            self.psum.element.eq(walker.address[2:][: psum_element_bits(cfg)]),
            self.psum.accumulate.eq(accumulate),
            self.psum.partitions.eq(columns),
            self.psum.data.eq(self.sums.data),
            self.psum.rounding.eq(rounding),
            self.psum.random.eq(bits.word),
        ]
        with m.If(rounding == Rounding.STOCHASTIC):  # what is not used costs a simulation nothing
            m.d.comb += [bits.seed.eq(seed), bits.ticket.eq(sequence), bits.element.eq(element)]
        committing = Signal(PSUM_ADD_CYCLES)
        failing = Signal(PSUM_ADD_CYCLES)
        lost = Signal()  # of the matmul whose rows come now
        lost_now = lost | (self.psum.lost & ~fault("a lost row of sums is not told"))
        m.d.sync += [
            committing.eq((committing << 1) | (self.sums.valid & walker.last)),
            failing.eq((failing << 1) | lost_now),
        ]
        with m.If(self.sums.valid):
            m.d.sync += lost.eq(lost_now & ~walker.last)
        m.d.comb += [
            self.done.eq(committing[-1]),
            self.failed.eq(failing[-1]),
            self.busy.eq(waiting.o.valid | walker.valid | committing.any()),
        ]
        with m.If(fault("a matmul is done when its last row leaves the array")):
            m.d.comb += self.done.eq(self.sums.valid & walker.last)
        return m
