"""Which kind of weights each row of the array holds, as the instructions so far say."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from rtl.base.dma_port import CAUSE_BITS
from rtl.base.fault import fault
from rtl.base.layouts import INSTRUCTION_LAYOUT
from rtl.base.pattern import partition_mask
from rtl.contract.config import Config
from rtl.contract.formats import FORMATS
from rtl.contract.isa import Cause, Opcode
from rtl.contract.kinds import Kind

__all__ = ["WeightsCheck"]

_KIND_BITS = 3
_PATTERN_BITS = 3
_LEGACY, _FN = FORMATS["e4m3"].code, FORMATS["e4m3fn"].code


class WeightsCheck(wiring.Component):
    """`cause` is ILLEGAL_DTYPE if a row or column that the MULTIPLY_MOVING `word` uses holds weights of another kind
    or the other E4M3; LOAD_PENDING if the TENSOR_TRANSPOSE `word` would overwrite weights that no matmul has taken.

    `passes`: `word`, with `columns` columns in src0, has been let through. Of each row: the kind loaded last (the two
    halves of FP32 are one, each pattern of sparsity is one), and how many columns of it lie side by side from
    column 0 on: a load moves what was there east. Where nothing was loaded are zeros of every kind; so are they
    where a transpose went, for the next load: matmuls before that still use the weights taken earlier. `start`
    forgets all. Numbers are kept in planes with a bit for each row, so that Verilator works on words.
    Timing: `cause` is combinational; a word counts from the next cycle on.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        self.bits = cfg.tensor.cols.bit_length()
        self.kind_bits = _KIND_BITS + (_PATTERN_BITS if cfg.tensor.sparsity else 0)
        super().__init__(
            {
                "word": In(INSTRUCTION_LAYOUT),
                "start": In(1),
                "passes": In(1),
                "columns": In(self.bits),
                "cause": Out(CAUSE_BITS),
            }
        )

    def _every(self, bit: Value) -> Value:
        """The bit for all rows; a multiplexer is short in Verilog, 128 copies are not."""
        rows = self.cfg.tensor.rows
        return Mux(bit, Const((1 << rows) - 1, rows), Const(0, rows))

    def _tile(self) -> Value:
        """Row groups of the tile that src0 lies in, a bit each: those whose number agrees in its upper bits."""
        tensor = self.cfg.tensor
        rank = exact_log2(tensor.groups)
        if not rank:
            return Const(1, 1)
        at = self.word.src0_partition_start[exact_log2(tensor.rows) - rank : exact_log2(tensor.rows)]
        return Cat(
            Cat((self.word.tile < k) | (at[rank - k] == g >> (rank - k) & 1) for k in range(1, rank + 1)).all()
            for g in range(tensor.groups)
        )

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
        groups = self.cfg.tensor.groups
        pending = Signal(groups)  # loaded, and not taken by a matmul
        blank = Signal(groups)  # a load finds zeros
        tile = Signal(groups)
        found = Signal(rows)  # rows in which something was loaded, as `word` finds them

        every = self._every
        loads, turns = word.opcode == Opcode.LOAD_STATIONARY, word.opcode == Opcode.TENSOR_TRANSPOSE
        cleared = Cat(bit.replicate(rows // groups) for bit in blank & tile)
        m.d.comb += [
            tile.eq(self._tile()),
            found.eq(held & ~(cleared & every(loads))),
        ]
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
            other = other | (
                (planes[i] ^ every(kind[i])) & ~every(fault("weights may be of another pattern of sparsity"))
            )
        mixed = (legacy & every(is_fn)) | (fn & every(is_legacy))
        differs = Signal(rows)  # from the weights that the row holds
        m.d.comb += differs.eq(
            found
            & (
                (other & ~every(fault("weights may be of another kind")))
                | (mixed & ~every(fault("the two E4M3 may be mixed")))
            )
        )
        few: Value = Const(0, rows)
        for plane, bit in zip(columns, word.dst_partition_count[: self.bits], strict=True):
            few = (~plane & every(bit)) | (~(plane ^ every(bit)) & few)
        wrong = (word.opcode == Opcode.MULTIPLY_MOVING) & ((differs | (held & few)) & used).any()
        early = turns & (pending & tile).any() & ~fault("a transpose may overwrite weights that no matmul has taken")
        m.d.comb += self.cause.eq(Mux(wrong, Cause.ILLEGAL_DTYPE, Mux(early, Cause.LOAD_PENDING, Cause.NONE)))
        with m.If(self.passes):
            with m.If(loads):
                m.d.sync += [pending.eq(pending | tile), blank.eq(blank & ~tile)]
            with m.Elif(turns):
                spread = fault("a transpose leaves nothing in other row tiles").replicate(groups)
                m.d.sync += blank.eq(
                    Mux(fault("a load finds what was there before a transpose"), blank, blank | tile | spread)
                )
            with m.Elif(word.opcode == Opcode.MULTIPLY_MOVING):
                m.d.sync += pending.eq(
                    pending & ~(tile | fault("a matmul takes the weights of all row tiles").replicate(groups))
                )
        with m.If(self.start):
            m.d.sync += [pending.eq(0), blank.eq(0)]

        taken = Signal(rows)
        m.d.comb += taken.eq(used | every(fault("a load counts for all rows")))
        with m.If(self.start):
            m.d.sync += held.eq(0)
        with m.Elif(self.passes & loads):
            fresh = differs | ~found
            number = Mux(fault("a load of few columns counts for all columns"), self.cfg.tensor.cols, self.columns)
            more = self._sum(m, columns, Mux(fault("columns of two loads of a kind are not added"), 0, self.columns))
            m.d.sync += held.eq(found | taken)
            for i, plane in enumerate(columns):
                full = every(Const(self.cfg.tensor.cols >> i & 1, 1))
                new = (~found & full) | (found & differs & every(number[i])) | (found & ~differs & more[i])
                m.d.sync += plane.eq((plane & ~taken) | (taken & new))
            for plane, bit in zip(planes, kind, strict=True):
                m.d.sync += plane.eq((plane & ~taken) | (taken & every(bit)))
            for plane, bit in ((legacy, is_legacy), (fn, is_fn)):
                m.d.sync += plane.eq((plane & ~(taken & fresh)) | (taken & every(bit)))
        return m
