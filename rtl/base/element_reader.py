"""Reads an operand: walks its access pattern and asks SBUF or PSUM for a word of every partition a cycle."""

from amaranth.hdl import Module, Mux, Signal, ValueLike
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.layouts import PATTERN_LAYOUT
from rtl.base.memory_port import QUADRANTS, PsumReadSignature, SbufReadSignature, psum_word_bits, sbuf_word_bits
from rtl.base.pattern import PatternWalker, partition_mask
from rtl.base.plant import planted
from rtl.contract.config import Config
from rtl.contract.isa import DIMENSIONS
from rtl.contract.memmap import Space

__all__ = ["ARRIVAL", "READ", "ElementReader"]

READ = data.StructLayout({"pattern": PATTERN_LAYOUT, "width": 2, "target": 8})
"""An operand, the logarithm of the elements that are read at once, and the partition to which its first one goes."""

ARRIVAL = data.StructLayout({"valid": 1, "psum": 1, "place": 3, "turn": 2})
"""What is on a read port: from which memory, at which byte of the word the first element lies, and by how many
quadrants its partitions move up."""


class ElementReader(wiring.Component):
    """`valid`: there is an element to ask for; in cycles with `enable` it is asked for, `granted` says with success.

    `from_psum` names the memory, `last` the final element, bit k of `ends` that dimensions 0 to k are at their ends.
    `arrival` describes the data that are on the read port in this cycle.
    Timing: as PatternWalker; operands follow each other without a gap.
    """

    FAULTS = {
        **PatternWalker.FAULTS,
        72: "the element's place in the word is that of the next request",
        75: "partitions keep their place",
    }

    def __init__(self, cfg: Config, plant: ValueLike = 0):
        self.cfg = cfg
        self.plant = plant
        super().__init__(
            {
                "command": In(stream.Signature(READ)),
                "sbuf": Out(SbufReadSignature(cfg)),
                "psum": Out(PsumReadSignature(cfg)),
                "enable": In(1),
                "valid": Out(1),
                "from_psum": Out(1),
                "granted": Out(1),
                "last": Out(1),
                "ends": Out(DIMENSIONS),
                "arrival": Out(ARRIVAL),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        m.submodules.walker = walker = PatternWalker(cfg, plant=self.plant)
        pattern = self.command.payload.pattern
        m.d.comb += [
            walker.command.valid.eq(self.command.valid),
            walker.command.payload.eq(pattern),
            walker.width.eq(self.command.payload.width),
            self.command.ready.eq(walker.command.ready),
            self.valid.eq(walker.valid),
            self.last.eq(walker.last),
            self.ends.eq(walker.ends),
        ]
        psum = Signal()
        turn = Signal(2)
        quadrants = Signal(QUADRANTS)
        size = cfg.partitions // QUADRANTS
        shift = size.bit_length() - 1
        with m.If(self.command.valid & self.command.ready):
            touched = partition_mask(pattern.partition_start, pattern.partition_count, cfg.partitions)
            moves = (self.command.payload.target >> shift) - (pattern.partition_start >> shift)
            m.d.sync += [
                psum.eq(pattern.space == Space.PSUM),
                turn.eq(Mux(planted(self.plant, 75), 0, moves)),
                *(quadrants[q].eq(touched[q * size : (q + 1) * size].any()) for q in range(QUADRANTS)),
            ]
        ask = Signal()
        m.d.comb += [
            ask.eq(walker.valid & self.enable),
            self.from_psum.eq(psum),
            self.sbuf.valid.eq(ask & ~psum),
            self.sbuf.quadrants.eq(quadrants),
            self.psum.valid.eq(ask & psum),
            self.psum.word.eq(walker.address[3:][: psum_word_bits(cfg)]),
            self.granted.eq(ask & Mux(psum, self.psum.ready, self.sbuf.ready)),
            walker.step.eq(self.granted),
        ]
        m.d.comb += [self.sbuf.word[q].eq(walker.address[3:][: sbuf_word_bits(cfg)]) for q in range(QUADRANTS)]
        m.d.sync += self.arrival.valid.eq(self.granted)
        with m.If(self.granted):
            m.d.sync += [
                self.arrival.psum.eq(psum),
                self.arrival.turn.eq(turn),
                self.arrival.place.eq(Mux(planted(self.plant, 72), walker.next_address[:3], walker.address[:3])),
            ]
        return m
