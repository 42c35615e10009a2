"""The special units of the vector engine behind one set of ports."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.config import Config
from rtl.contract.isa import Opcode, block
from rtl.vector.bn import BatchNorm
from rtl.vector.shuffle import MASK_BITS, Shuffle
from rtl.vector.top8 import Top8
from rtl.vector.top8_lane import VALUES
from rtl.vector.transpose import Transpose

__all__ = ["SPECIAL", "SpecialUnits"]

_TOP8 = (Opcode.MAX8, Opcode.FIND_INDEX8, Opcode.MATCH_REPLACE8)
_BATCH = (Opcode.BN_STATS, Opcode.BN_AGGR, Opcode.RECIPROCAL)
SPECIAL = (*_TOP8, *_BATCH, Opcode.TRANSPOSE, Opcode.SHUFFLE)
"""What these units run."""


class SpecialUnits(wiring.Component):
    """Runs one instruction of SPECIAL after the other. Ports: docs/vector-special.md. `results`: places of the writer.

    Timing: a beat is registered, then its unit works on it. MATCH_REPLACE8 and SHUFFLE: `out_valid` two cycles after
    `valid`. The domain needs edges only in cycles with `start` or `busy`.
    """

    def __init__(self, cfg: Config, results: int = 16, size: int | None = None):
        self.cfg = cfg
        self.results = results
        self.size = block(cfg.partitions) if size is None else size
        wide = 32 * cfg.partitions
        super().__init__(
            {
                "start": In(1),
                "opcode": In(8),
                "mask": In(MASK_BITS * self.size),
                "a": In(wide),
                "room": Out(1),
                "granted": In(1),
                "valid": In(1),
                "values": In(1),
                "last": In(1),
                "x": In(wide),
                "out_valid": Out(1),
                "out": Out(wide),
                "written": In(1),
                "touched": Out(cfg.partitions),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.top8 = top8 = Top8(self.cfg)
        m.submodules.shuffle = shuffle = Shuffle(self.cfg, self.size)
        m.submodules.transpose = transpose = Transpose(self.cfg, self.size)
        m.submodules.batch = batch = BatchNorm(self.cfg)
        opcode = Signal(8)
        mask = Signal.like(self.mask)
        came = Signal()
        values = Signal()
        last = Signal()
        x = Signal(len(self.x), reset_less=True)
        m.d.sync += [came.eq(self.valid), values.eq(self.values), last.eq(self.last)]
        with m.If(self.valid):
            m.d.sync += x.eq(self.x)
        with m.If(self.start):
            m.d.sync += [opcode.eq(self.opcode), mask.eq(self.mask), self.busy.eq(1)]

        limit = self.results + fault("more is asked for than the writer has places")
        owed = Signal(range(self.results + 2))  # places of the writer: results that are in it or will be
        asked = Signal(range(VALUES + 1))  # values of src1 that were asked for
        place = Signal()
        gives = Signal()
        done = Signal()
        replaces = opcode == Opcode.MATCH_REPLACE8
        source = self.granted & (~replaces | (asked == VALUES))
        m.d.comb += place.eq(owed < limit)
        m.d.sync += owed.eq(owed + gives - (self.written | fault("results that the writer still has are forgotten")))
        with m.If(self.granted & (asked != VALUES)):
            m.d.sync += asked.eq(asked + 1)
        with m.If(done):
            m.d.sync += self.busy.eq(0)
        with m.If(self.start):
            m.d.sync += [owed.eq(0), asked.eq(0)]

        beats = ((top8, _TOP8), (batch, _BATCH), (transpose, (Opcode.TRANSPOSE,)), (shuffle, (Opcode.SHUFFLE,)))
        for unit, opcodes in beats:
            chosen = Signal(name=f"chosen_{opcodes[0].name.lower()}")
            m.d.comb += [
                chosen.eq(Cat(opcode == o for o in opcodes).any()),
                unit.valid.eq(came & chosen),
                unit.last.eq(last),
                unit.x.eq(x),
            ]
            with m.If(chosen):
                m.d.comb += [self.out_valid.eq(unit.out_valid), self.out.eq(unit.out), done.eq(unit.done)]
        for unit, opcodes in ((transpose, (Opcode.TRANSPOSE,)), (batch, _BATCH)):
            m.d.comb += unit.granted.eq(self.granted & Cat(opcode == o for o in opcodes).any())
        for unit in (top8, transpose, batch):
            m.d.comb += [unit.start.eq(self.start), unit.place.eq(place)]
        m.d.comb += [
            top8.opcode.eq(opcode),
            top8.values.eq(values),
            top8.a.eq(self.a),
            batch.opcode.eq(Mux(self.start, self.opcode, opcode)),
            shuffle.mask.eq(mask),
            self.touched.eq(~(opcode == Opcode.SHUFFLE).replicate(self.cfg.partitions) | shuffle.touched),
        ]
        may = Signal()
        m.d.comb += [may.eq(1), gives.eq(source)]
        with m.Switch(opcode):
            with m.Case(Opcode.MAX8, Opcode.FIND_INDEX8):
                m.d.comb += gives.eq(top8.gives)
            with m.Case(*_BATCH):
                m.d.comb += [may.eq(batch.room), gives.eq(batch.out_valid)]
            with m.Case(Opcode.TRANSPOSE):
                m.d.comb += [may.eq(transpose.room), gives.eq(transpose.gives)]
            with m.Case(Opcode.MATCH_REPLACE8):
                m.d.comb += may.eq(place | (asked != VALUES))
            with m.Case(Opcode.SHUFFLE):
                m.d.comb += may.eq(place)
        m.d.comb += self.room.eq(self.busy & may)
        return m
