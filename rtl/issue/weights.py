"""Which kind of weights each row of the array holds, as the instructions so far say."""

from amaranth.hdl import Cat, Module, Signal, Value, ValueLike
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.layouts import INSTRUCTION_LAYOUT
from rtl.base.pattern import partition_mask
from rtl.base.plant import planted
from rtl.contract.config import Config
from rtl.contract.formats import FORMATS
from rtl.contract.kinds import Kind

__all__ = ["WeightsCheck"]

_KIND_BITS = 3
_LEGACY, _FN = FORMATS["e4m3"].code, FORMATS["e4m3fn"].code


class WeightsCheck(wiring.Component):
    """`wrong`: a row that the MULTIPLY_MOVING `word` uses holds weights of another kind, or of the other E4M3.

    `loads`: the LOAD_STATIONARY `word` has been let through. Rows never loaded hold zeros of every kind; the two
    halves of FP32 are one kind. `start` forgets all. One bit a row in each plane, so that Verilator works on words.
    Timing: `wrong` is combinational; a load counts from the next cycle on.
    """

    FAULTS = {
        1: "weights may be of another kind",
        2: "the two E4M3 may be mixed",
        3: "a load counts for all rows",
    }

    def __init__(self, cfg: Config, plant: ValueLike = 0):
        self.cfg = cfg
        self.plant = plant
        super().__init__({"word": In(INSTRUCTION_LAYOUT), "start": In(1), "loads": In(1), "wrong": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        rows = self.cfg.tensor.rows
        word = self.word
        held = Signal(rows)  # something was loaded
        planes = [Signal(rows, name=f"kind{i}") for i in range(_KIND_BITS)]
        legacy = Signal(rows)
        fn = Signal(rows)

        kind = Signal(_KIND_BITS)
        m.d.comb += kind.eq(word.kind)
        with m.If(word.kind == Kind.LOW):
            m.d.comb += kind.eq(Kind.HIGH)
        used = Signal(rows)
        m.d.comb += used.eq(partition_mask(word.src0_partition_start, word.src0_partition_count, rows))

        different: Value = planes[0] ^ kind[0].replicate(rows)
        for i in range(1, _KIND_BITS):
            different = different | (planes[i] ^ kind[i].replicate(rows))
        different = different & held & ~planted(self.plant, 1).replicate(rows)
        mixed = (legacy & (word.src0_dtype == _FN).replicate(rows)) | (
            fn & (word.src0_dtype == _LEGACY).replicate(rows)
        )
        mixed = mixed & ~planted(self.plant, 2).replicate(rows)
        m.d.comb += self.wrong.eq(((different | mixed) & used).any())

        taken = Signal(rows)
        m.d.comb += taken.eq(used | planted(self.plant, 3).replicate(rows))
        with m.If(self.start):
            m.d.sync += [held.eq(0), legacy.eq(0), fn.eq(0)]
        with m.Elif(self.loads):
            m.d.sync += held.eq(held | taken)
            of_word = Cat(kind, word.src0_dtype == _LEGACY, word.src0_dtype == _FN)
            for plane, bit in zip((*planes, legacy, fn), of_word, strict=True):
                m.d.sync += plane.eq((plane & ~taken) | (taken & bit.replicate(rows)))
        return m
