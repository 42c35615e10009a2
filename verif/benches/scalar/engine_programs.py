"""Programs for the scalar engine: one instruction, table loads, random legal instructions of all kinds."""

from dataclasses import dataclass

import numpy as np

from rtl.contract.access_pattern import AccessPattern, start_partition_rule
from rtl.contract.activation_tables import ENTRIES, FIRST_TABLE_FUNCTION, image
from rtl.contract.config import Config
from rtl.contract.formats import FORMATS, by_code
from rtl.contract.isa import INSTRUCTION, REDUCTIONS, AluOp, Function, Opcode, Reduce
from rtl.contract.memmap import Space
from verif.agents.patterns import random_partitions, random_pattern
from verif.golden.memory import Memory, offsets
from verif.golden.operands import pattern_of

__all__ = ["AFFINE", "DIRECT", "OPCODES", "PAIRS", "SMALL", "SOURCES", "TARGETS", "Fields", "Programs", "instruction"]

Fields = dict[str, int]

SOURCES = tuple(n for n, f in FORMATS.items() if f.bytes and n not in ("tf32", "e8m0"))
TARGETS = (*SOURCES, "tf32")
OPCODES = (Opcode.ACTIVATION, Opcode.SCALAR_COPY, Opcode.SCALAR_AFFINE)
PAIRS = (
    (AluOp.MULTIPLY, AluOp.ADD),
    (AluOp.MULTIPLY, AluOp.SUBTRACT),
    (AluOp.MULTIPLY, AluOp.BYPASS),
    (AluOp.ADD, AluOp.BYPASS),
    (AluOp.SUBTRACT, AluOp.BYPASS),
    (AluOp.BYPASS, AluOp.BYPASS),
)
AFFINE = tuple(
    (a, b)
    for a in (AluOp.BYPASS, AluOp.ADD, AluOp.SUBTRACT, AluOp.MULTIPLY)
    for b in (AluOp.BYPASS, AluOp.ADD, AluOp.SUBTRACT)
)
SMALL = tuple(n for n in SOURCES if FORMATS[n].bytes <= 2)
"""Formats whose elements come two at a time."""
DIRECT = tuple(f for f in Function if f < FIRST_TABLE_FUNCTION)


@dataclass(frozen=True)
class Room:
    """A piece of SBUF that programs leave alone but for what it is named for."""

    offset: int
    size: int


class Programs:
    """Makes programs for the operands that lie in `sbuf`; half of it is kept for images of tables."""

    def __init__(self, cfg: Config, rng: np.random.Generator, sbuf: Memory):
        self._cfg, self.rng, self.sbuf = cfg, rng, sbuf
        self.tables = Room(cfg.sbuf.partition_bytes // 2, cfg.sbuf.partition_bytes // 2)

    def load(
        self, functions: list[str] | None = None, *, partitions: int | None = None, first: int | None = None
    ) -> Fields:
        """A LOAD_TABLE of these functions, or of random cubics for SIGMOID, all of them from row `first` on if that is
        given; its image lies in `self.tables`."""
        count = self._cfg.partitions if partitions is None else partitions
        if functions is None:
            words = np.array(self._random_image(count, first), np.uint32)
            names = ["sigmoid"]
        else:
            words = np.array(image(functions, self._cfg.scalar.table_rows, count), np.uint32)
            names = functions
        assert 4 * words.shape[1] <= self.tables.size
        place = AccessPattern(
            space=Space.SBUF, dtype=FORMATS["uint32"].code, partition_start=0, partition_count=count,
            offset=self.tables.offset, dims=((1, words.shape[1]),),
        )  # fmt: skip
        self.sbuf.write(place, words)
        mask = sum(1 << Function[name.upper()] for name in names)
        return instruction(Opcode.LOAD_TABLE, src0=place, imm0=mask)

    def _random_image(self, partitions: int, at: int | None = None, rows: int = 40) -> list[list[int]]:
        rng = self.rng
        first = 1 << 20 | (Function.SIGMOID - FIRST_TABLE_FUNCTION) * ENTRIES
        base = int(rng.integers(0, self._cfg.scalar.table_rows - 256 - rows)) if at is None else at
        pairs = []
        for i in range(ENTRIES):
            bits = int(rng.integers(0, 9))
            mode = int(rng.choice(8, p=[0.3] + [0.1] * 7)) << 29
            row = base + int(rng.integers(0, max(1, rows - (1 << bits)))) if 1 << bits < rows and at is None else base
            pairs.append(
                (first + i, row | bits << 16 | int(rng.choice([0, 1, 511, 488, 40, 300, 382, 378])) << 20 | mode)
            )
        cubics = (rng.standard_normal((256 + rows, 4)) * 2).astype(np.float32).view(np.uint32)
        cubics[rng.random(cubics.shape) < 0.02] = 0x7F800000
        pairs += [(4 * (base + r) + c, int(w)) for r, row in enumerate(cubics) for c, w in enumerate(row)]
        pairs = [pairs[i] for i in rng.permutation(len(pairs))]
        pairs += pairs[-1:] * (-len(pairs) % partitions)
        return [[n for pair in pairs[p::partitions] for n in pair] for p in range(partitions)]

    def random(self, length: int, loaded: tuple[Function, ...] = ()) -> list[Fields]:
        """Legal instructions of all kinds but loads; no destination meets a source of its own, some read the one
        before."""
        program: list[Fields] = []
        while len(program) < length:
            one = self._random_one(program[-1] if program else None, loaded)
            if one is not None:
                program.append(one)
        return program

    def _random_one(self, before: Fields | None, loaded: tuple[Function, ...]) -> Fields | None:
        rng, cfg = self.rng, self._cfg
        start, count = random_partitions(rng, cfg.partitions)
        elements = 1 if rng.random() < 0.15 else int(rng.integers(1, 40))
        beside = rng.random() < 0.4  # neighbours on both sides, so that most of these go in pairs
        if beside and rng.random() < 0.85:
            elements += elements % 2
        pattern = self._neighbours if beside else self._pattern
        src = pattern((start, count), elements, SMALL if beside else SOURCES)
        follows = before is not None and rng.random() < 0.4
        if follows and before is not None:
            last = pattern_of(before, "dst")
            if by_code(last.dtype).name in SOURCES:
                src = last
            start, count, elements = src.partition_start, src.partition_count, src.elements
        legal = [q * (cfg.partitions // 4) for q in range(4)]
        legal = [s for s in legal if start_partition_rule(s, count, cfg.partitions) and s + count <= cfg.partitions]
        same = by_code(src.dtype).name
        formats = (same,) if same in SMALL and rng.random() < 0.3 else SMALL if beside else TARGETS
        dst = pattern((start if follows else int(rng.choice(legal)), count), elements, formats)
        if _meet(src, dst):
            return None
        opcode = OPCODES[int(rng.choice(3, p=[0.7, 0.15, 0.15]))]
        if opcode == Opcode.SCALAR_COPY:
            return instruction(opcode, src0=src, dst=dst)
        if opcode == Opcode.SCALAR_AFFINE:
            return instruction(opcode, src0=src, dst=dst, **self._affine(before))
        op0, op1 = PAIRS[rng.integers(len(PAIRS))]
        reduce = Reduce(int(rng.choice(4, p=[0.6, 0.15, 0.15, 0.1] if beside else [0.3, 0.25, 0.28, 0.17])))
        codes = [f for f in (*DIRECT, *loaded, *loaded)]
        by = int(rng.choice(REDUCTIONS)) if reduce != Reduce.IDLE else 0
        store = reduce != Reduce.IDLE and rng.random() < 0.5
        free = self.tables.offset - 4
        columns = rng.random(2) < 0.3
        places = [4 * int(rng.integers(free // 4)) for _ in range(3)]
        if before is not None and before["store"] and rng.random() < 0.5:
            columns[0], places[0] = True, before["imm2"] & 0xFFFFFF
        elif before is not None and _fp32_in_sbuf(before) and rng.random() < 0.7:
            columns[0], places[0] = True, int(offsets(pattern_of(before, "dst"))[-1])
        values = [int(v) for v in self._constants(2)]
        has_a, has_b = op0 != AluOp.BYPASS, op1 != AluOp.BYPASS or reduce == Reduce.LOAD_REDUCE
        columns &= (has_a, has_b)
        imm0 = (places[0] if columns[0] else values[0]) if has_a else 0
        imm1 = (places[1] if columns[1] else values[1]) if has_b else 0
        imm2 = int(rng.choice(codes)) << 32 | by << 40 | (places[2] if store else 0)
        return instruction(
            Opcode.ACTIVATION, src0=src, dst=dst, op0=op0, op1=op1,
            reverse0=int(has_a and rng.random() < 0.4), reverse1=int(op1 != AluOp.BYPASS and rng.random() < 0.4),
            column0=int(columns[0]), column1=int(columns[1]), reduce=reduce, store=int(store),
            imm0=imm0 | int(self._constants(1)[0]) << 32, imm1=imm1, imm2=imm2,
        )  # fmt: skip

    def _affine(self, before: Fields | None) -> Fields:
        """Any two operators, any operands."""
        rng = self.rng
        op0, op1 = AFFINE[rng.integers(len(AFFINE))]
        columns = [int(n) for n in rng.random(2) < 0.3]
        free = (self.tables.offset - 4) // 4
        places = [4 * int(rng.integers(free)) for _ in range(2)]
        if before is not None and before["store"] and rng.random() < 0.5:
            columns[0], places[0] = 1, before["imm2"] & 0xFFFFFF
        values = [int(v) for v in self._constants(2)]
        fields = {f"column{n}": columns[n] for n in range(2)}
        fields |= {f"imm{n}": places[n] if columns[n] else values[n] for n in range(2)}
        return fields | {"op0": op0, "op1": op1} | {f"reverse{n}": int(rng.integers(2)) for n in range(2)}

    def _neighbours(self, partitions: tuple[int, int], elements: int, formats: tuple[str, ...]) -> AccessPattern:
        """Elements side by side in SBUF, in one row or two; now and then they begin at an odd one."""
        rng = self.rng
        fmt = FORMATS[str(rng.choice(formats))]
        dims = [(1, elements)]
        if elements % 2 == 0 and rng.random() < 0.4:
            dims = [(1, elements // 2), (elements // 2 + int(rng.integers(4)), 2)]
        room = self.tables.offset // fmt.bytes - 2 * elements - 8
        at = int(rng.integers(room)) & ~1 | int(rng.random() < 0.15)
        return AccessPattern(
            space=Space.SBUF, dtype=fmt.code, partition_start=partitions[0], partition_count=partitions[1],
            offset=at * fmt.bytes, dims=tuple(dims),
        )  # fmt: skip

    def _constants(self, count: int) -> np.ndarray:
        numbers = self.rng.standard_normal(count).astype(np.float32).view(np.uint32)
        odd = self.rng.integers(0, 1 << 32, count, dtype=np.uint32)
        special = self.rng.choice(np.array([0, 1 << 31, 0x3F800000, 0x7F800000, 0x7FC00001], np.uint32), count)
        return np.choose(self.rng.choice(3, count, p=[0.7, 0.1, 0.2]), [numbers, odd, special])

    def _pattern(self, partitions: tuple[int, int], elements: int, formats: tuple[str, ...]) -> AccessPattern:
        if self.rng.random() < 0.35:
            return random_pattern(
                self.rng, space=Space.PSUM, dtype="fp32", partitions=partitions, elements=elements,
                partition_bytes=self._cfg.psum.partition_bytes,
            )  # fmt: skip
        return random_pattern(
            self.rng, space=Space.SBUF, dtype=str(self.rng.choice(formats)), partitions=partitions,
            elements=elements, partition_bytes=self.tables.offset,
        )  # fmt: skip


def instruction(opcode: Opcode, *, src0: AccessPattern, dst: AccessPattern | None = None, **fields: int) -> Fields:
    """All fields of an instruction."""
    values = {"opcode": int(opcode), **{k: int(v) for k, v in fields.items()}}
    for name, pattern in (("src0", src0), ("dst", dst)):
        if pattern is not None:
            values |= {f"{name}_{k}": v for k, v in pattern.fields().items()}
    return INSTRUCTION.unpack(INSTRUCTION.pack(values))


def _fp32_in_sbuf(f: Fields) -> bool:
    return f["dst_space"] == Space.SBUF and f["dst_dtype"] == FORMATS["fp32"].code


def _meet(a: AccessPattern, b: AccessPattern) -> bool:
    """Whether two patterns share a byte offset (whatever their partitions)."""
    spans = [{int(at) + n for at in offsets(p) for n in range(by_code(p.dtype).bytes)} for p in (a, b)]
    return a.space == b.space and bool(spans[0] & spans[1])
