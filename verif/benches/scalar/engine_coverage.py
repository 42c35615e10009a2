"""What the programs for the scalar engine must have contained, and what its bench must have seen."""

from rtl.contract.config import Config
from rtl.contract.formats import by_code
from rtl.contract.isa import REDUCTIONS, AluOp, Function, Opcode, Reduce
from rtl.contract.memmap import Space
from verif.benches.scalar.engine_programs import AFFINE, DIRECT, PAIRS, SOURCES, TARGETS, Fields
from verif.benches.scalar.pair_coverage import cover_pairs
from verif.checks.coverage import Coverage
from verif.golden.memory import offsets
from verif.golden.operands import pattern_of

__all__ = ["COVERAGE", "cover"]

COVERAGE = Coverage(
    "scalar.engine",
    [f"from {n}" for n in SOURCES]
    + [f"to {n}" for n in TARGETS]
    + [f"{a.name} to {b.name}" for a in (Space.SBUF, Space.PSUM) for b in (Space.SBUF, Space.PSUM)]
    + [f"{n} quadrants up" for n in range(4)]
    + [f.name for f in DIRECT]
    + ["a table of its own", "a table of random cubics", "a table over another"]
    + [f"{a.name}, {b.name}" for a, b in PAIRS]
    + ["a op0 x", "b op1 x", "a is a column", "b is a column", "both are columns"]
    + [f"{r.name} {op.name}" for r in Reduce if r != Reduce.IDLE for op in REDUCTIONS]
    + ["b of a reduction is a column", "accumulator stored", "accumulator kept for the next"]
    + ["one element", "all partitions", "some partitions"]
    + ["sbuf read refused", "psum read refused", "sbuf write refused", "psum write refused"]
    + ["reads what the one before wrote to SBUF", "reads what the one before wrote to PSUM"]
    + ["reads a column that the one before wrote", "reads what the one before stored"]
    + [f"SCALAR_AFFINE {a.name}, {b.name}" for a, b in AFFINE]
    + ["fill", "drain", "sbuf", "psum", "unit", "clock stands still"],
)


def cover(program: list[Fields], cfg: Config) -> None:
    """Bins of a program that ran on an engine of this configuration."""
    before: Fields | None = None
    for f in program:
        if f["opcode"] != Opcode.LOAD_TABLE:
            _cover(f, before, cfg.partitions)
            cover_pairs(f, before, cfg)
            before = f


def _cover(f: Fields, before: Fields | None, partitions: int) -> None:
    src, dst = pattern_of(f, "src0"), pattern_of(f, "dst")
    quarter = partitions // 4
    COVERAGE.hit(f"from {by_code(src.dtype).name}")
    COVERAGE.hit(f"to {by_code(dst.dtype).name}")
    COVERAGE.hit(f"{Space(src.space).name} to {Space(dst.space).name}")
    COVERAGE.hit(f"{(dst.partition_start - src.partition_start) // quarter % 4} quadrants up")
    activates = f["opcode"] == Opcode.ACTIVATION
    function = Function(f["imm2"] >> 32 & 0xFF)
    COVERAGE.when(activates and function in DIRECT, function.name)
    op0, op1, reduce = AluOp(f["op0"]), AluOp(f["op1"]), Reduce(f["reduce"])
    COVERAGE.when(activates, f"{op0.name}, {op1.name}")
    COVERAGE.when(f["opcode"] == Opcode.SCALAR_AFFINE, f"SCALAR_AFFINE {op0.name}, {op1.name}")
    COVERAGE.when(f["reverse0"], "a op0 x")
    COVERAGE.when(f["reverse1"], "b op1 x")
    COVERAGE.when(f["column0"], "a is a column")
    COVERAGE.when(f["column1"], "b is a column")
    COVERAGE.when(f["column0"] and f["column1"], "both are columns")
    if reduce != Reduce.IDLE:
        COVERAGE.hit(f"{reduce.name} {AluOp(f['imm2'] >> 40 & 63).name}")
        COVERAGE.when(reduce == Reduce.LOAD_REDUCE and f["column1"], "b of a reduction is a column")
        COVERAGE.hit("accumulator stored" if f["store"] else "accumulator kept for the next")
    COVERAGE.when(src.elements == 1, "one element")
    COVERAGE.hit("all partitions" if src.partition_count == partitions else "some partitions")
    if before is None:
        return
    wrote = pattern_of(before, "dst")
    COVERAGE.when(src == wrote, f"reads what the one before wrote to {Space(src.space).name}")
    column = f["imm0"] & 0xFFFFFF
    COVERAGE.when(
        f["column0"] and wrote.space == Space.SBUF and column in offsets(wrote),
        "reads a column that the one before wrote",
    )
    stored = before["store"] and column == before["imm2"] & 0xFFFFFF
    COVERAGE.when(f["column0"] and stored, "reads what the one before stored")
