"""Parts of the golden machine's engines against plain loops, on shapes and patterns that hypothesis thinks of."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtl.contract.access_pattern import AccessPattern
from rtl.contract.activation_tables import image, load_words, table
from rtl.contract.formats import FORMATS
from rtl.contract.isa import REDUCTIONS, AluOp, Function, Reduce
from rtl.contract.memmap import Space
from verif.golden import vector
from verif.golden.activation import TableMemory, through_table
from verif.golden.alu import alu
from verif.golden.memory import Memory
from verif.golden.operands import Operands

F32 = np.float32
INTEGERS = [name for name, f in FORMATS.items() if f.integer]


def codes(seed: int, *shape: int) -> np.ndarray:
    """Ordinary numbers and a few of any kind."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape).astype(F32).view(np.uint32)
    odd = rng.integers(0, 1 << 32, shape, dtype=np.uint64).astype(np.uint32)
    return np.where(rng.random(shape) < 0.1, odd, x)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 3), st.integers(1, 6), st.integers(1, 40), st.sampled_from(REDUCTIONS), st.booleans())
def test_reduce_is_a_loop(rows: int, outer: int, inner: int, op: AluOp, negate: bool):
    x = codes(inner, rows, outer * inner)
    found = vector.tensor_reduce(x, op, inner, negate)
    start = {AluOp.ADD: 0, AluOp.MAX: 0xFF800000, AluOp.MIN: 0x7F800000, AluOp.ABSMAX: 0, AluOp.ABSMIN: 0x7F800000}[op]
    for r, o in product(range(rows), range(outer)):
        parts = [np.array(start, np.uint32) for _ in range(8)]
        for i in range(inner):
            parts[i % 8] = alu(op, parts[i % 8], x[r, o * inner + i])
        while len(parts) > 1:
            parts = [alu(op, parts[j], parts[j + 1]) for j in range(0, len(parts), 2)]
        value = int(parts[0].reshape(-1)[0])
        if negate and value & 0x7FFFFFFF <= 0x7F800000:
            value ^= 1 << 31
        assert int(found[r, o]) == value


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(INTEGERS), st.integers(0, 2**32 - 1))
def test_integers_enter_and_leave_as_bits(name: str, value: int):
    fmt = FORMATS[name]
    code = value & ((1 << fmt.bits) - 1)
    bits = np.array([[code]], f"u{fmt.bytes}")
    number = code - (1 << fmt.bits) if fmt.signed and code >> (fmt.bits - 1) else code
    inside = vector.enter(bits, name, raw=True)
    assert int(inside[0, 0]) == number & 0xFFFFFFFF
    assert np.array_equal(vector.leave(inside, name, raw=True), bits)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 4)), min_size=1, max_size=3), st.integers(0, 1000))
def test_masked_writes_are_a_loop(dims: list[tuple[int, int]], seed: int):
    pattern = AccessPattern(
        space=Space.SBUF, dtype=FORMATS["bf16"].code, partition_start=2, partition_count=3, offset=6, dims=tuple(dims)
    )
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 1 << 16, (3, pattern.elements), dtype=np.uint16)
    mask = rng.integers(0, 2, values.shape).astype(bool)
    memory, expected = Memory(8, 256), Memory(8, 256)
    memory.write(pattern, values, mask)
    cells = expected.bytes.view(np.uint16)
    at = [
        3 + sum(i * step for i, (step, _) in zip(reversed(index), dims, strict=True))
        for index in product(*(range(count) for _, count in reversed(dims)))
    ]
    for p, e in product(range(3), range(pattern.elements)):
        if mask[p, e]:
            cells[2 + p, at[e]] = values[p, e]
    assert np.array_equal(memory.bytes, expected.bytes)


def test_accumulator_partitions():
    """Only the partitions of dst change; what is stored is what they then hold."""
    operands = Operands(Memory(8, 64), Memory(8, 64))
    f = {"dst_" + name: 0 for name in ("space", "dtype", "offset")}
    f |= {f"dst_{kind}{i}": 1 for i in range(4) for kind in ("step", "count")}
    f |= {"dst_partition_start": 4, "dst_partition_count": 2, "store": 1, "reduce": Reduce.RESET_REDUCE}
    first = np.array([1.5, 2.5], F32).view(np.uint32)
    assert np.array_equal(operands.reduced(f, AluOp.ADD, first), first)
    f |= {"reduce": Reduce.REDUCE, "dst_partition_start": 5}
    second = operands.reduced(f, AluOp.ADD, first)
    assert second is not None
    assert second.view(F32).tolist() == [4.0, 2.5]
    assert operands.accumulator.view(F32).tolist() == [0, 0, 0, 0, 1.5, 4.0, 2.5, 0]


@pytest.mark.parametrize("kind", list(Reduce))
def test_accumulate(kind: Reduce):
    one, two, five = (np.array([v], F32).view(np.uint32) for v in (1, 2, 5))
    expected = {Reduce.IDLE: 1, Reduce.RESET_REDUCE: 2, Reduce.REDUCE: 3, Reduce.LOAD_REDUCE: 7}[kind]
    assert vector.accumulate(kind, AluOp.ADD, one, two, five[:, None]).view(F32).tolist() == [expected]


def test_nan_goes_through_range_select_and_select():
    nan = np.array([[0x7FC00001]], np.uint32)
    a, b = np.array([[0]], np.uint32), np.array([[F32(9).view(np.uint32)]], np.uint32)
    assert vector.range_select(nan, AluOp.GE, a, AluOp.LT, b, 0).tolist() == [[0x7FC00001]], "bits pass"
    assert vector.range_select(nan, AluOp.GT, a, AluOp.LT, b, 0).tolist() == [[0xFF7FFFFF]]
    assert vector.is_true(np.array([0, 0x8000, 1, 0x7FC0], np.uint16), "bf16").tolist() == [False, False, True, True]


@pytest.mark.parametrize("partitions", [8, 32, 128])
def test_tables_are_the_same_from_any_number_of_partitions(partitions: int):
    names = ["gelu", "sin", "exp"]
    words = np.array(image(names, 8192, partitions), np.uint32)
    assert words.shape[0] == partitions and words.shape[1] % 2 == 0
    assert words.size >= 2 * len(load_words(names, 8192))
    memory = TableMemory(8192)
    memory.load(words)
    x = np.random.default_rng(0).integers(0, 1 << 32, (4, 1000), dtype=np.uint64).astype(np.uint32)
    for name in names:
        assert np.array_equal(memory.function(x, Function[name.upper()]), through_table(x, table(name)))
