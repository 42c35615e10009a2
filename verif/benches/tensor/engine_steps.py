"""Instructions for the tensor engine's benches, and what a program of them must leave in PSUM."""

from dataclasses import dataclass
from typing import Any

from rtl.contract.access_pattern import AccessPattern
from rtl.contract.formats import by_code
from rtl.contract.isa import INSTRUCTION, Opcode, Queue
from rtl.contract.kinds import Kind
from rtl.contract.memmap import Space
from verif.agents.bench import manifest
from verif.agents.memory_port import add_fp32
from verif.agents.patterns import command_word, contiguous
from verif.golden.array_kinds import Columns, KindsState, operand_columns, sparse_columns
from verif.golden.groups import bytes_of, moving_bytes_of
from verif.golden.memory import Memory
from verif.golden.rounding import row_words, to_bf16
from verif.golden.sparsity import tags_of
from verif.golden.tensor_instructions import turned

__all__ = ["GROUPS", "Step", "gemm_steps", "golden_psum"]

GROUPS = manifest().config.tensor.groups


@dataclass(frozen=True)
class Step:
    """One instruction."""

    opcode: Opcode
    src: AccessPattern
    dst: AccessPattern | None = None
    accumulate: bool = False
    tile: int = 0  # logarithm of the number of row tiles
    kind: int = Kind.ONE
    scales: AccessPattern | None = None
    table: int = 0
    rounding: int = 0
    seed: int = 0
    sparsity: int = 0

    @property
    def turns(self) -> bool:
        """Whether it is a transpose."""
        return self.opcode == Opcode.TENSOR_TRANSPOSE

    def word(self, sequence: int) -> int:
        """As the port has it."""
        fields = {"accumulate": int(self.accumulate), "kind": self.kind, "tile": self.tile}
        fields |= {"rounding": self.rounding, "imm2": self.seed, "sparsity": self.sparsity}
        fields |= {"imm0": self.table & (1 << 64) - 1, "imm1": self.table >> 64}
        return command_word(self.opcode, sequence, src0=self.src, src1=self.scales, dst=self.dst, fields=fields)

    def fields(self) -> dict[str, int]:
        """Of the instruction word."""
        return INSTRUCTION.unpack(self.word(0))

    def columns(self, sbuf: Memory) -> Columns:
        """The operand as the golden array takes it."""
        if self.kind != Kind.SPARSE:
            return operand_columns(sbuf, self.src, self.kind, self.scales, self.table)
        tags = tags_of(sbuf, self.scales, self.src.elements) if self.scales else None
        return sparse_columns(sbuf, self.src, self.sparsity, tags)

    def reads(self) -> list[tuple[AccessPattern, int]]:
        """Its operands in SBUF, with the bytes of their elements."""
        sparse = self.kind == Kind.SPARSE and self.opcode == Opcode.MULTIPLY_MOVING
        found = [(self.src, moving_bytes_of(self.sparsity) if sparse else bytes_of(self.kind, self.src.dtype))]
        return found + [(s, by_code(s.dtype).bytes) for s in (self.scales,) if s is not None]

    def rows(self) -> range:
        """Rows of the operand."""
        return range(self.src.partition_start, self.src.partition_start + self.src.partition_count)

    def place(self, rows: int) -> int:
        """Which of the tiles."""
        return self.src.partition_start // (rows >> self.tile)

    def exit(self, rows: int) -> int:
        """Row group at which the sums, or the rows of a transpose, leave."""
        return (self.place(rows) + 1) * (GROUPS >> self.tile) - 1


def golden_psum(cfg: Any, sbuf: Memory, psum: Memory, program: list[Step]) -> Memory:
    """PSUM after the program, from the golden array."""
    result = Memory(cfg.partitions, cfg.psum.partition_bytes)
    result.bytes[:] = psum.bytes
    state = KindsState(cfg.tensor.rows, cfg.tensor.cols, GROUPS)
    for n, s in enumerate(program):
        if s.turns and s.dst is not None:
            state.clear(s.src.partition_start, 1 << s.tile)
            result.write(s.dst, turned(sbuf, s.src))
            continue
        columns = s.columns(sbuf)
        if s.dst is None:
            state.load(columns, s.src.partition_start, 1 << s.tile)
            continue
        sums = state.matmul(columns, s.src.partition_start, 1 << s.tile)[: s.dst.partition_count]
        if s.accumulate:
            sums = add_fp32(result.read(s.dst), sums)
        sums = to_bf16(sums, s.rounding, row_words(s.seed, Queue.TENSOR, n % 2**16, sums.shape[1]))
        result.write(s.dst, sums.astype("<u4"))
    return result


def gemm_steps(
    cfg: Any, count: int, columns: int, *, step: int = 1, tile: int = 0, at: int = 0, offset: int = 0
) -> list[Step]:
    """`count` times a load of a whole tile, that at place `at`, and a stream of `columns` to PSUM from `offset`."""
    rows = (at * (cfg.tensor.rows >> tile), cfg.tensor.rows >> tile)
    loads = cfg.tensor.cols
    steps: list[Step] = []
    for n in range(count):
        src = contiguous(space=Space.SBUF, dtype="bf16", partitions=rows, elements=loads, offset=2 * loads * n)
        steps.append(Step(Opcode.LOAD_STATIONARY, src, tile=tile))
        src = contiguous(space=Space.SBUF, dtype="bf16", partitions=rows, elements=columns, step=step)
        dst = contiguous(
            space=Space.PSUM, dtype="fp32", partitions=(0, cfg.tensor.cols), elements=columns, offset=offset
        )
        steps.append(Step(Opcode.MULTIPLY_MOVING, src, dst, n > 0, tile))
    return steps
