"""What goes two at a time in the scalar engine, and what almost does: how much of it the programs had."""

from rtl.contract.activation_tables import FIRST_TABLE_FUNCTION
from rtl.contract.config import Config
from rtl.contract.formats import by_code
from rtl.contract.isa import Opcode, Reduce
from rtl.contract.memmap import Space
from rtl.contract.rates import width
from verif.benches.scalar.engine_programs import OPCODES, SMALL, Fields
from verif.checks.coverage import Coverage
from verif.golden.operands import pattern_of

__all__ = ["PAIR_COVERAGE", "beat", "cover_pairs"]

PAIR_COVERAGE = Coverage(
    "scalar.pairs",
    [f"pairs of {opcode.name}" for opcode in OPCODES]
    + [f"pairs from {n}" for n in SMALL]
    + [f"pairs to {n}" for n in SMALL]
    + [
        "pairs of 8 to 16 bits",
        "pairs of 16 to 8 bits",
        "pairs in two rows",
        "pairs behind pairs",
        "pairs behind others",
    ]
    + ["pairs through a table", "pairs with columns", "one pair", "two a cycle"]
    + ["neighbours from an odd one on", "an odd number of neighbours", "neighbours of a reduction"]
    + ["a copy of bits", "a copy that converts", "a copy of bits behind other results", "NaN with all its bits"]
    + ["every code of 16 bits copied", "every code of 8 bits copied"],
)


def beat(f: Fields, cfg: Config) -> int:
    """Elements that it moves at once."""
    sources = pattern_of(f, "src0"), None, pattern_of(f, "dst")
    return width(Opcode(f["opcode"]), cfg, *sources, sums=f["reduce"] != Reduce.IDLE)


def cover_pairs(f: Fields, before: Fields | None, cfg: Config) -> None:
    """Bins of an instruction that ran behind another one."""
    src, dst = pattern_of(f, "src0"), pattern_of(f, "dst")
    names = by_code(src.dtype).name, by_code(dst.dtype).name
    copies = f["opcode"] == Opcode.SCALAR_COPY
    PAIR_COVERAGE.when(copies, "a copy of bits" if names[0] == names[1] else "a copy that converts")
    closely = before is not None and src.space == Space.PSUM and before["dst_space"] == Space.SBUF
    computed = before is not None and before["opcode"] != Opcode.SCALAR_COPY
    PAIR_COVERAGE.when(copies and names[0] == names[1] and closely and computed, "a copy of bits behind other results")
    small = all(name in SMALL and p.space == Space.SBUF for name, p in zip(names, (src, dst), strict=True))
    if beat(f, cfg) == 2:
        PAIR_COVERAGE.hit(f"pairs of {Opcode(f['opcode']).name}")
        PAIR_COVERAGE.hit(f"pairs from {names[0]}")
        PAIR_COVERAGE.hit(f"pairs to {names[1]}")
        bits = tuple(by_code(p.dtype).bits for p in (src, dst))
        PAIR_COVERAGE.when(bits[0] != bits[1], f"pairs of {bits[0]} to {bits[1]} bits")
        PAIR_COVERAGE.when(sum(n > 1 for _, n in src.dims) > 1, "pairs in two rows")
        PAIR_COVERAGE.when(
            before is not None, f"pairs behind {'pairs' if before and beat(before, cfg) == 2 else 'others'}"
        )
        tabled = f["opcode"] == Opcode.ACTIVATION and f["imm2"] >> 32 & 0xFF >= FIRST_TABLE_FUNCTION
        PAIR_COVERAGE.when(tabled, "pairs through a table")
        PAIR_COVERAGE.when(f["column0"] or f["column1"], "pairs with columns")
        PAIR_COVERAGE.when(src.elements == 2, "one pair")
    elif small and src.dims[0][0] == dst.dims[0][0] == 1:
        at = src.offset // by_code(src.dtype).bytes, dst.offset // by_code(dst.dtype).bytes
        PAIR_COVERAGE.when(any(n % 2 for n in at), "neighbours from an odd one on")
        PAIR_COVERAGE.when(src.dims[0][1] % 2 and src.elements > 1, "an odd number of neighbours")
        PAIR_COVERAGE.when(f["reduce"] != Reduce.IDLE, "neighbours of a reduction")
