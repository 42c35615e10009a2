"""Which kind of weights each row of the array holds, as the instructions so far say."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, ValueLike
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
_PATTERN_BITS = 3
_LEGACY, _FN = FORMATS["e4m3"].code, FORMATS["e4m3fn"].code


class WeightsCheck(wiring.Component):
    """`wrong`: a row or column that the MULTIPLY_MOVING `word` uses holds weights of another kind, or the other E4M3.

    `loads`: the LOAD_STATIONARY `word`, of `columns` columns, has been let through. Of each row: the kind loaded
    last (the two halves of FP32 are one, each pattern of sparsity is one), and how many columns of it lie side by side
    from column 0 on: a load moves what was there east. Where nothing was loaded are zeros of every kind. `start`
    forgets all. Numbers are kept in planes with a bit for each row, so that Verilator works on words.
    Timing: `wrong` is combinational; a load counts from the next cycle on.
    """

    FAULTS = {
        1: "weights may be of another kind",
        2: "the two E4M3 may be mixed",
        3: "a load counts for all rows",
        4: "a load of few columns counts for all columns",
        5: "columns of two loads of a kind are not added",
        6: "weights may be of another pattern of sparsity",
    }

    def __init__(self, cfg: Config, plant: ValueLike = 0):
        self.cfg = cfg
        self.plant = plant
        self.bits = cfg.tensor.cols.bit_length()
        self.kind_bits = _KIND_BITS + (_PATTERN_BITS if cfg.tensor.sparsity else 0)
        super().__init__(
            {
                "word": In(INSTRUCTION_LAYOUT),
                "start": In(1),
                "loads": In(1),
                "columns": In(self.bits),
                "wrong": Out(1),
            }
        )

    def _every(self, bit: Value) -> Value:
        """The bit for all rows; a multiplexer is short in Verilog, 128 copies are not."""
        rows = self.cfg.tensor.rows
        return Mux(bit, Const((1 << rows) - 1, rows), Const(0, rows))

    def _sum(self, m: Module, planes: list[Signal], addend: Value) -> list[Value]:
        """Columns of each row and `addend` more, at most all of them, of which the highest plane tells."""
        rows = self.cfg.tensor.rows
        total: list[Value] = []
        carry = Signal(rows, name="carry_in")
        for i, (plane, bit) in enumerate(zip(planes, addend, strict=True)):
            b, half, following = (Signal(rows, name=f"{name}{i}") for name in ("addend", "half", "carry"))
            m.d.comb += [
                b.eq(self._every(bit)),
                half.eq(plane ^ b),
                following.eq((plane & b) | (carry & half)),
            ]
            total.append(half ^ carry)
            carry = following
        whole = Signal(rows, name="whole")
        m.d.comb += whole.eq(total[-1] | carry)
        return [*(plane & ~whole for plane in total[:-1]), whole]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        rows = self.cfg.tensor.rows
        word = self.word
        held = Signal(rows)  # something was loaded
        planes = [Signal(rows, name=f"kind{i}") for i in range(self.kind_bits)]
        columns = [Signal(rows, name=f"columns{i}") for i in range(self.bits)]
        legacy = Signal(rows)
        fn = Signal(rows)

        every = self._every
        kind = Signal(self.kind_bits)
        used = Signal(rows)
        m.d.comb += [
            kind.eq(Cat(Mux(word.kind == Kind.LOW, Kind.HIGH, word.kind)[:_KIND_BITS], word.sparsity)),
            used.eq(partition_mask(word.src0_partition_start, word.src0_partition_count, rows)),
        ]
        is_legacy = word.src0_dtype == _LEGACY
        is_fn = word.src0_dtype == _FN
        other: Value = planes[0] ^ every(kind[0])
        for i in range(1, _KIND_BITS):
            other = other | (planes[i] ^ every(kind[i]))
        for i in range(_KIND_BITS, self.kind_bits):
            other = other | ((planes[i] ^ every(kind[i])) & ~every(planted(self.plant, 6)))
        mixed = (legacy & every(is_fn)) | (fn & every(is_legacy))
        differs = Signal(rows)  # from the weights that the row holds
        m.d.comb += differs.eq(
            held & ((other & ~every(planted(self.plant, 1))) | (mixed & ~every(planted(self.plant, 2))))
        )
        few: Value = Const(0, rows)
        for plane, bit in zip(columns, word.dst_partition_count[: self.bits], strict=True):
            few = (~plane & every(bit)) | (~(plane ^ every(bit)) & few)
        m.d.comb += self.wrong.eq(((differs | (held & few)) & used).any())

        taken = Signal(rows)
        m.d.comb += taken.eq(used | every(planted(self.plant, 3)))
        with m.If(self.start):
            m.d.sync += held.eq(0)
        with m.Elif(self.loads):
            fresh = differs | ~held
            number = Mux(planted(self.plant, 4), self.cfg.tensor.cols, self.columns)
            more = self._sum(m, columns, Mux(planted(self.plant, 5), 0, self.columns))
            m.d.sync += held.eq(held | taken)
            for i, plane in enumerate(columns):
                full = every(Const(self.cfg.tensor.cols >> i & 1, 1))
                new = (~held & full) | (held & differs & every(number[i])) | (held & ~differs & more[i])
                m.d.sync += plane.eq((plane & ~taken) | (taken & new))
            for plane, bit in zip(planes, kind, strict=True):
                m.d.sync += plane.eq((plane & ~taken) | (taken & every(bit)))
            for plane, bit in ((legacy, is_legacy), (fn, is_fn)):
                m.d.sync += plane.eq((plane & ~(taken & fresh)) | (taken & every(bit)))
        return m
