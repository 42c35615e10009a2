"""The vector engine's way in: takes instructions, walks their sources, asks for one element a cycle."""

from amaranth.hdl import Module, Mux, Signal, ValueLike
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.dispatch import COMMAND
from rtl.base.layouts import PATTERN_LAYOUT
from rtl.base.memory_port import QUADRANTS, PsumReadSignature, SbufReadSignature, psum_element_bits, sbuf_word_bits
from rtl.base.pattern import PatternWalker, operand, partition_mask
from rtl.base.plant import planted
from rtl.contract.config import Config
from rtl.contract.memmap import Space
from rtl.contract.timing import STALLS, Engine

__all__ = ["ELEMENT", "RESULTS", "Reader"]

RESULTS = 8  # elements read and not written; five keep one element a cycle going

ELEMENT = data.StructLayout({"valid": 1, "psum": 1, "place": 3, "src": 4, "dst": 4, "turn": 2})
"""What is known of an element: its memory, its byte in the word, its formats, and by how many quadrants
of partitions it moves up."""

_STALLS = STALLS[Engine.VECTOR]


class Reader(wiring.Component):
    """Hands the destination of each instruction to `writer` and reads its source.

    `element` describes the data that are on the read ports in this cycle. `written` gives back a place
    among the RESULTS that may be on their way. `writing`: an earlier instruction has writes to make.
    An instruction that reads SBUF is taken when all writes before it are made, so instructions of the
    queue see the results of those in front; one that reads PSUM, which nobody here writes, at once.
    """

    FAULTS = {
        **PatternWalker.FAULTS,
        71: "a read of SBUF does not wait for the writes before it",
        72: "the element's place in the word is that of the next request",
    }

    def __init__(self, cfg: Config, plant: ValueLike = 0):
        self.cfg = cfg
        self.plant = plant
        super().__init__(
            {
                "command": In(stream.Signature(COMMAND)),
                "writer": Out(stream.Signature(PATTERN_LAYOUT)),
                "sbuf": Out(SbufReadSignature(cfg)),
                "psum": Out(PsumReadSignature(cfg)),
                "element": Out(ELEMENT),
                "written": In(1),
                "writing": In(1),
                "holds": Out(1),
                "busy": Out(1),
                "state": Out(4),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        m.submodules.walker = walker = PatternWalker(cfg, plant=self.plant)
        source = operand(self.command.payload.word, "src0")
        target = operand(self.command.payload.word, "dst")

        from_psum = Signal()
        clear = Signal()
        accept = Signal()
        m.d.comb += [
            from_psum.eq(source.space == Space.PSUM),
            clear.eq(from_psum | ~(self.busy | self.writing) | planted(self.plant, 71)),
            self.command.ready.eq(walker.command.ready & self.writer.ready & clear),
            accept.eq(self.command.valid & self.command.ready),
            walker.command.valid.eq(accept),
            walker.command.payload.eq(source),
            self.writer.valid.eq(accept),
            self.writer.payload.eq(target),
        ]
        current = Signal(ELEMENT)
        quadrants = Signal(QUADRANTS)
        size = cfg.partitions // QUADRANTS
        touched = partition_mask(source.partition_start, source.partition_count, cfg.partitions)
        shift = (cfg.partitions // QUADRANTS).bit_length() - 1
        with m.If(accept):
            m.d.sync += [
                current.psum.eq(from_psum),
                current.src.eq(source.dtype),
                current.dst.eq(target.dtype),
                current.turn.eq((target.partition_start >> shift) - (source.partition_start >> shift)),
            ]
            m.d.sync += [quadrants[q].eq(touched[q * size : (q + 1) * size].any()) for q in range(QUADRANTS)]

        places = Signal(range(RESULTS + 1), init=RESULTS)
        ask = Signal()
        granted = Signal()
        m.d.comb += [
            ask.eq(walker.valid & (places != 0)),
            self.sbuf.valid.eq(ask & ~current.psum),
            self.sbuf.quadrants.eq(quadrants),
            self.psum.valid.eq(ask & current.psum),
            self.psum.element.eq(walker.address[2:][: psum_element_bits(cfg)]),
            granted.eq((self.sbuf.valid & self.sbuf.ready) | (self.psum.valid & self.psum.ready)),
            walker.step.eq(granted),
        ]
        m.d.comb += [self.sbuf.word[q].eq(walker.address[3:][: sbuf_word_bits(cfg)]) for q in range(QUADRANTS)]
        m.d.sync += [
            places.eq(places - granted + self.written),
            self.element.eq(current),
            self.element.place.eq(walker.address[:3]),
            self.element.valid.eq(granted),
        ]
        with m.If(planted(self.plant, 72)):
            m.d.sync += self.element.place.eq(walker.next_address[:3])

        sbuf = 2 + _STALLS.index("sbuf")
        psum = 2 + _STALLS.index("psum")
        fill = 2 + _STALLS.index("fill")
        refused = Mux(current.psum & (places != 0), psum, sbuf)  # no place: SBUF does not take the results
        m.d.comb += [
            self.busy.eq(walker.valid),
            self.holds.eq(walker.valid | accept),
            self.state.eq(Mux(granted, 0, Mux(walker.valid, refused, fill))),
        ]
        return m
