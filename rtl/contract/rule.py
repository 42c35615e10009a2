"""What the rules of an opcode are made of; the rules themselves: rtl.contract.rules."""

from dataclasses import dataclass

from rtl.contract.config import Config
from rtl.contract.isa import INSTRUCTION, AluOp, block
from rtl.contract.memmap import Space

__all__ = ["ELEMENTS_MAX", "IMMEDIATES", "OpcodeRule", "OperandRule", "immediate_bits"]

ELEMENTS_MAX = 1 << 17
"""Most elements a partition of an operand: a whole SBUF partition of 16-bit elements."""

IMMEDIATES: dict[str, tuple[int, int]] = {
    "imm0": (0, 64),
    "imm1": (64, 64),
    "imm2": (128, 64),
    "load": (0, 40),  # of GP_LOAD and GP_STORE: gpsimd.LOAD
    "tohost": (64, 32),
    "a": (0, 32),
    "b": (64, 32),
    "functions": (16, 16),  # of LOAD_TABLE: those that have tables
    "slope": (32, 32),
    "start": (96, 32),
    "place": (128, 24),
    "function": (160, 8),
    "reduction": (168, 6),
    "scales": (0, 24),  # of QUANTIZE_MX: their place, slot and rule
    "slot": (24, 2),
    "rule": (26, 1),
    "seed": (128, 32),  # of Rounding.STOCHASTIC
    "map": (0, 128),  # E4M3FN codes of the sixteen E2M1 numbers, 0 with other formats
    "mask": (0, 0),  # 6 bits for each partition of a block
}
"""What immediates may hold: first bit and number of bits in imm2, imm1, imm0, the last one lowest."""

_MASK_BITS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class OperandRule:
    """One operand: which formats in which memories, how many partitions and elements.

    `partitions` names the limit: start + count is at most tensor.rows ("rows"), tensor.cols ("cols") or the
    partitions of the core ("core"). `most` elements a partition: a number, tensor.cols ("cols") or
    tensor.moving_max ("moving"); `multiple`: they are a multiple of 1, 2, 3, 16 or isa.block ("block"). `blocks`: so
    are the first partition and their number, `eights`: of 8. `from_zero`: from partition 0. `ascending`: no element
    twice, each dimension steps over the whole one inside it. `row`: neighbours, in one dimension. `aligned`: the offset
    is a multiple of the bytes of so many elements. `fours`: an element of the pattern is four of the format. `kinds`:
    formats and bytes of an element go by the instruction's kind (rtl.contract.kinds); MX blocks and buses of partitions
    are whole. `raw`: the kind is RAW, else any other. `moves`: it is the moving side. `scales`: those of src0, 0
    with a kind that has none; `tags`: with kind SPARSE it is the tags of src0, on its partitions.
    """

    field: str
    dtypes: dict[Space, tuple[str, ...]]
    partitions: str = "core"
    most: int | str = ELEMENTS_MAX
    least: int = 1
    multiple: int | str = 1
    blocks: bool = False
    eights: bool = False
    row: bool = False
    aligned: int = 1
    fours: bool = False
    from_zero: bool = False
    ascending: bool = False
    kinds: bool = False
    moves: bool = False
    raw: bool = False
    scales: bool = False
    tags: bool = False

    def end(self, cfg: Config) -> int:
        """First partition that the operand must not touch."""
        return {"rows": cfg.tensor.rows, "cols": cfg.tensor.cols, "core": cfg.partitions}[self.partitions]

    def elements_limit(self, cfg: Config) -> int:
        """Most elements of a partition."""
        if isinstance(self.most, int):
            return self.most
        return {"cols": cfg.tensor.cols, "moving": cfg.tensor.moving_max}[self.most]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpcodeRule:
    """An opcode. Operands, immediates and fields of the header that it does not name must be 0. `free`: operands that
    may hold any bits, since who executes it looks at them; `raw`: reserved ones of their pattern too.

    `op0`, `op1`: operators it takes; one bit operator calls for another, or BYPASS as op1. `pairs`: which go
    together, if not all. `columns`: which of a and b it has, constant or column. `sums`: it has an accumulator (fields
    reduce and store, imm2); `loads`: LOAD_REDUCE too, with b, so op1 must be BYPASS then; without an op1 that is all
    that b is for. `equal`: sources with as many elements as dst.
    """

    operands: tuple[OperandRule, ...] = ()
    free: tuple[str, ...] = ()
    raw: bool = False
    immediates: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    op0: tuple[AluOp, ...] = ()
    op1: tuple[AluOp, ...] = ()
    pairs: tuple[tuple[AluOp, AluOp], ...] = ()
    columns: tuple[str, ...] = ()
    sums: bool = False
    loads: bool = False
    equal: tuple[str, ...] = ()
    same_partitions: bool = False  # partition_count of all operands
    same_format: bool = False  # of src0 and dst
    reduces: bool = False  # dst has an element for each group of src0
    quarter: bool = False  # dst has an element for four of src0
    turned: bool = False  # dst has an element for each partition of src0, a partition for each element

    @property
    def header(self) -> tuple[str, ...]:
        """Fields of the header that it takes."""
        columns = (f"column{'ab'.index(name)}" for name in self.columns)
        return (*self.fields, *columns, *(("reduce", "store") if self.sums else ()))

    @property
    def holds(self) -> tuple[str, ...]:
        """What its immediates hold, by the names of IMMEDIATES."""
        return (*self.immediates, *self.columns, *(("place",) if self.sums else ()))


def immediate_bits(cfg: Config, rule: OpcodeRule) -> tuple[int, int, int]:
    """Bits of imm0, imm1 and imm2 that an instruction may set."""
    bits = 0
    for name in rule.holds:
        first, width = IMMEDIATES[name]
        bits |= (1 << (width or _MASK_BITS * block(cfg.partitions))) - 1 << first
    size = INSTRUCTION.offset("imm1") - INSTRUCTION.offset("imm0")
    whole = (1 << size) - 1
    return bits & whole, bits >> size & whole, bits >> 2 * size
