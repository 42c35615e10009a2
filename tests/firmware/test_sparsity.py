"""Structured sparsity on the host and in the kernel language: pruning, packing, what is refused, what a product is."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware.image import build_image
from firmware.kernel import Kernel, KernelError
from firmware.numbers import decode, encode
from firmware.sparsity import (
    dense_product,
    find_pattern,
    lay_moving,
    moving_format,
    pack,
    pack_tags,
    prune,
    unpack,
    unpack_tags,
)
from firmware.workloads import find_workload
from rtl.contract.config import Config, load, named
from rtl.contract.isa import Cause, Opcode, Queue
from rtl.contract.kinds import Kind
from rtl.contract.sparsity import PATTERNS, Sparsity
from verif.golden.machine import GoldenMachine

TINY = named("tiny")
patterns = st.sampled_from(list(PATTERNS.values()))


def refuse(sentence: str, action: Callable[[], object]) -> None:
    with pytest.raises(KernelError) as error:
        action()
    text = str(error.value)
    assert sentence in text and "\n" not in text


@given(patterns, st.integers(1, 4), st.integers(1, 9), st.integers(0, 2**32), st.booleans())
def test_packing_and_back_is_pruning(p: Sparsity, groups: int, columns: int, seed: int, equal: bool) -> None:
    rng = np.random.default_rng(seed)
    shape = (groups * p.group, columns)
    values = rng.integers(-2, 3, shape).astype(np.float32) if equal else rng.standard_normal(shape, np.float32)
    kept = prune(values, p)
    numbers, tags = pack(kept, p)
    assert numbers.shape == (shape[0] // p.ratio, columns) and tags.dtype == np.uint16
    assert np.array_equal(unpack(numbers, tags, p), kept)
    # What stays is at least as large as what goes, and of equal numbers that of lower k stays.
    for k, column in np.argwhere((values != 0) & (kept == 0)):
        first = k // p.group * p.group
        mine, others = values[first : first + p.group, column], kept[first : first + p.group, column]
        before = [i for i in range(p.group) if others[i] != 0]
        assert len(before) == p.kept
        assert all(abs(mine[i]) >= abs(mine[k - first]) for i in before)
        assert all(abs(mine[i]) > abs(mine[k - first]) or i < k - first for i in before)


@given(patterns, st.integers(1, 3), st.integers(1, 6), st.integers(0, 2**32))
def test_tags_name_the_numbers_of_a_bus(p: Sparsity, groups: int, columns: int, seed: int) -> None:
    """Row r of bus b keeps number `tag` of group b: on the moving side element tag mod ratio of row tag / ratio."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((groups * p.group, columns), np.float32)
    moving = rng.integers(1, 1 << 16, (groups * p.group, 3)).astype(np.uint16)
    numbers, packed = pack(prune(values, p), p)
    laid = lay_moving(moving, p)
    for row, column in np.ndindex(numbers.shape):
        bus, tag = row // p.kept, int(unpack_tags(packed, columns)[row, column])
        assert numbers[row, column] == values[bus * p.group + tag, column]
        element = laid[bus * p.kept + tag // p.ratio] >> laid.dtype.type(16 * (tag % p.ratio)) & laid.dtype.type(0xFFFF)
        assert np.array_equal(element, moving[bus * p.group + tag])


def test_what_cannot_be_packed_is_refused_in_a_sentence() -> None:
    p = PATTERNS["2:4"]
    numbers = np.zeros((2, 1), np.float32)
    refuse("k=6 is no multiple of 4, the numbers of a group of sparsity 2:4", lambda: prune(np.zeros((6, 1)), p))
    crowded = np.zeros((8, 2))
    crowded[[4, 6, 7], 1] = 1
    refuse("column 1 has 3 numbers that are not 0 in k=4 to 7; sparsity 2:4 keeps 2", lambda: pack(crowded, p))
    refuse("tag 1 in row 1 of column 0 is not above the tag before it", lambda: pack_tags(np.array([[1], [1]]), p))
    refuse("tag 0 in row 1 of column 0 is not above", lambda: unpack(numbers, np.array([[2], [0]], np.uint16), p))
    refuse("tag 4 in row 1 of column 0 is not below the group of 4", lambda: pack_tags(np.array([[1], [4]]), p))
    refuse("3 rows of tags are no multiple of 2", lambda: pack_tags(np.array([[1], [2], [3]]), p))
    refuse("tags of 1 columns are [rows, 1], not [2, 2]", lambda: unpack(numbers, np.zeros((2, 2), np.uint16), p))
    refuse("2 rows of numbers have 4 rows of tags", lambda: unpack(numbers, np.array([[0], [1]] * 2, np.uint16), p))
    refuse("sparsity must be one of 4:16, 4:12, 4:8, 2:8, 2:4, 1:4, 1:2, not '3:7'", lambda: find_pattern("3:7"))


def test_elements_are_what_the_instruction_set_says() -> None:
    assert pack_tags(np.array([[1, 2, 3, 4, 5]]), Sparsity(0, 1, 16)).tolist() == [[0x4321, 5]]
    assert lay_moving(np.array([[1], [2], [3]] * 4, np.uint16), PATTERNS["4:12"]).tolist() == [[0x300020001]] * 4
    assert [moving_format("fp16", p) for p in PATTERNS.values()] == [
        "fp16_x4", "fp16_x4", "fp16_x2", "fp16_x4", "fp16_x2", "fp16_x4", "fp16_x2",
    ]  # fmt: skip


def _operands(
    k: Kernel, moving: str = "bf16_x4", stationary: str = "bf16", tags: int = 2, dtype: str = "uint16"
) -> Any:
    w = k.sbuf("w", partitions=8, columns=8, dtype=stationary)
    t = k.sbuf("t", partitions=8, columns=tags, dtype=dtype)
    x = k.sbuf("x", partitions=8, columns=16, dtype=moving)
    return w, t, x, k.psum("sums", partitions=8, columns=16)


def test_operands_that_do_not_go_together_are_refused() -> None:
    def job(sentence: str, build: Callable[[Kernel], object], cfg: Config = TINY) -> None:
        refuse(sentence, lambda: build(Kernel(cfg, "test")))

    def loaded(k: Kernel, pattern: str = "4:16", rows: slice = slice(None), **kinds: Any) -> Any:
        w, t, x, sums = _operands(k, **kinds)
        k.tensor.load(w[rows, :], tags=t[rows, :], sparsity=pattern)
        return x, sums

    def multiplied(k: Kernel, rows: slice = slice(None), **kinds: Any) -> None:
        x, sums = loaded(k, **kinds)
        k.tensor.matmul(x[rows, :], sums[:, :])

    def plain(k: Kernel) -> None:
        w, _, x, sums = _operands(k)
        k.tensor.load(w[:, :])
        k.tensor.matmul(x[:, :], sums[:, :])

    def without(k: Kernel) -> None:
        w, t, _, _ = _operands(k)
        k.tensor.load(w[:, :], tags=t[:, :])

    def untagged(k: Kernel) -> None:
        k.tensor.load(_operands(k)[0][:, :], sparsity="4:16")

    def moves_only(k: Kernel) -> None:
        k.tensor.load(_operands(k)[2][:, :8])

    def elsewhere(k: Kernel) -> None:
        w, t, _, _ = _operands(k)
        k.tensor.load(w[:4, :], tags=t[4:, :], sparsity="4:16")

    job("sparsity must be one of", lambda k: loaded(k, "2:16"))
    job("w has tags and no sparsity", without)
    job("w has sparsity 4:16 and needs tags", untagged)
    job("tags t of w are uint8; they must be uint16", lambda k: loaded(k, dtype="uint8"))
    job("tags t have 3 elements a partition; 8 columns need 2, 4 columns in each", lambda k: loaded(k, tags=3))
    job("tags t are on 4 partitions from 4, w on 4 from 0; they must be the same", elsewhere)
    job("w is tf32; with sparsity it must be bf16 or fp16", lambda k: loaded(k, stationary="tf32"))
    job("takes 2 partitions from 2; sparse rows begin at a multiple of 4", lambda k: loaded(k, "2:4", slice(2, 4)))
    job("takes 2 partitions from 0; with sparsity 4:8 4 rows share a bus", lambda k: loaded(k, "4:8", slice(2)))
    job("4:16, so 4 numbers lie side by side: bf16_x4 or fp16_x4", lambda k: multiplied(k, moving="bf16_x2"))
    job("1:2, so 2 numbers lie side by side: bf16_x2 or fp16_x2", lambda k: multiplied(k, pattern="1:2"))
    job("x is bf16; w has sparsity 4:16", lambda k: multiplied(k, moving="bf16"))
    job("they must be the same", lambda k: multiplied(k, slice(4)))
    job("both sides must be of that kind", plain)
    job("x is bf16_x4; such numbers only move, beside sparse weights", moves_only)
    off = load("tiny", ["tensor.sparsity=false"])
    job("with tensor.sparsity off there is no kind sparse", lambda k: loaded(k), off)


def test_a_load_and_a_matmul_say_the_pattern() -> None:
    k = Kernel(TINY, "test")
    w, t, x, sums = _operands(k, "fp16_x2")
    k.tensor.load(w[:, :], tags=t[:, :], sparsity="2:4")
    k.tensor.matmul(x[:, :], sums[:, :])
    steps = [(i.opcode, i.kind, i.sparsity) for i in k.program().queues[Queue.TENSOR]]
    code = PATTERNS["2:4"].code
    assert steps == [(Opcode.LOAD_STATIONARY, Kind.SPARSE, code), (Opcode.MULTIPLY_MOVING, Kind.SPARSE, code)]


@pytest.mark.parametrize("sides", [("bf16", "bf16"), ("fp16", "bf16")])
@pytest.mark.parametrize("pattern", list(PATTERNS.values()), ids=lambda p: p.name)
def test_the_golden_machine_computes_the_dense_product(pattern: Sparsity, sides: tuple[str, str]) -> None:
    """Both halves of the rows, each with weights of its own, against the dense product by tolerance."""
    rng = np.random.default_rng(pattern.code)
    k = Kernel(TINY, "sparse")
    depth, m, n = 8 * pattern.ratio, 7, 9
    dense = decode(encode(rng.standard_normal((depth, m), np.float32), sides[0]), sides[0])
    moving = encode(rng.standard_normal((depth, n), np.float32), sides[1])
    numbers, tags = pack(prune(dense, pattern), pattern)
    formats = sides[0], "uint16", moving_format(sides[1], pattern)
    arrays = encode(numbers, sides[0]), tags, lay_moving(moving, pattern)
    tiles = []
    for name, dtype, bits in zip(("w", "t", "x"), formats, arrays, strict=True):
        tile = k.sbuf(name, partitions=8, columns=bits.shape[1], dtype=dtype)
        k.dma(tile[:, :], k.hbm(f"{name}_hbm", bits.shape, dtype, bits)[:, :])
        tiles.append(tile)
    w, t, x = tiles
    sums, out = k.psum("sums", partitions=m, columns=n), k.sbuf("out", partitions=m, columns=n, dtype="fp32")
    for half in (slice(0, 4), slice(4, 8)):
        k.tensor.load(w[half, :], tags=t[half, :], sparsity=pattern.name)
        k.tensor.matmul(x[half, :], sums[:, :], accumulate=half.start > 0)
    k.vector.copy(out[:, :], sums[:, :])
    k.dma(k.hbm("c", (m, n), "fp32")[:, :], out[:, :])
    machine = GoldenMachine(TINY)
    machine.load(build_image(k.program()))
    result = machine.run()
    assert not result.faults
    want = dense_product(numbers, tags, decode(moving, sides[1]), pattern)
    assert np.abs(decode(result.outputs["c"], "fp32") - want).max() < 1e-5


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_tags_that_descend_end_a_program(seed: int | None) -> None:
    k = Kernel(TINY, "test")
    w, t, x, sums = _operands(k, "bf16_x2")
    bits = np.tile(np.array([[0x3030], [0x1010]], np.uint16), (4, 2))
    k.dma(t[:, :], k.hbm("tags", (8, 2), "uint16", bits)[:, :])
    k.vector.memset(w[:, :], 1.0)
    k.vector.memset(k.sbuf("y", partitions=8, columns=2, dtype="bf16")[:, :], 1.0)
    k.tensor.load(w[:, :], tags=t[:, :], sparsity="2:4")
    k.tensor.matmul(x[:, :], sums[:, :])
    machine = GoldenMachine(TINY, seed)
    machine.load(build_image(k.program()))
    result = machine.run()
    sequence = next(i for i, one in enumerate(k.program().queues[Queue.TENSOR]) if one.opcode == Opcode.LOAD_STATIONARY)
    assert [(f.queue, f.sequence, f.cause, f.address) for f in result.faults] == [("tensor", sequence, Cause.TAGS, 0)]


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
@pytest.mark.parametrize("pattern", list(PATTERNS))
def test_sparse_products_of_any_size(pattern: str, dtype: str) -> None:
    workload = find_workload("gemm")
    for cfg, m, k, n, resident in ((TINY, 9, 96, 20, True), (named("small"), 70, 192, 33, False)):
        program = workload.build(
            cfg, {"m": m, "k": k, "n": n, "dtype": dtype, "sparsity": pattern, "resident": resident}, 3
        )
        machine = GoldenMachine(cfg)
        machine.load(build_image(program))
        result = machine.run()
        found = workload.metrics(program, result.outputs)
        p = PATTERNS[pattern]
        assert not result.faults and program.macs == m * n * k // p.ratio
        assert found["cosine"] > 1 - 1e-12 and found["max_abs_error"] < 4e-5
        assert found["kept_share"] == p.kept / p.group <= found["kept_energy"] < 1
        assert 0.7 < found["dense_cosine"] < 1


@pytest.mark.parametrize("pattern", list(PATTERNS.values()), ids=lambda p: p.name)
def test_a_sparse_product_takes_fewer_beats(pattern: Sparsity) -> None:
    sizes = {"m": 8, "k": 96, "n": 8, "resident": True}
    dense, sparse = (find_workload("gemm").build(TINY, sizes | more) for more in ({}, {"sparsity": pattern.name}))
    assert sparse.tensor_columns * pattern.ratio == dense.tensor_columns == 96
    assert sparse.macs * pattern.ratio == dense.macs


def test_sparse_workloads_refuse_in_a_sentence() -> None:
    def build(cfg: Config = TINY, **params: Any) -> Callable[[], object]:
        return lambda: find_workload("gemm").build(cfg, params)

    refuse("sparsity must be one of 4:16, 4:12, 4:8, 2:8, 2:4, 1:4, 1:2, not '4:4'", build(sparsity="4:4"))
    refuse("k=100 is no multiple of 16, the numbers of a group of sparsity=4:16", build(k=100, sparsity="4:16"))
    refuse("sparsity=1:2 takes dtype bf16 or fp16, not mxfp8", build(dtype="mxfp8", sparsity="1:2"))
    off = load("tiny", ["tensor.sparsity=false"])
    refuse("sparsity=1:2 needs the setting tensor.sparsity=true", build(off, sparsity="1:2"))


def _chains(weights: np.ndarray, x: np.ndarray, pattern: Sparsity, rows: int) -> np.ndarray:
    """C [M, N] of pruned weights [K, M]: a chain from +0 over the kept k of every `rows` x N / M of K, in ascending k,
    and an FP32 addition between two of them."""
    numbers = np.float64(x)
    total = np.zeros((weights.shape[1], x.shape[1]), np.float32)
    for first in range(0, len(weights), rows * pattern.ratio):
        chain = np.zeros_like(total)
        for column in range(len(chain)):
            for k in range(first, min(first + rows * pattern.ratio, len(weights))):
                if weights[k, column]:
                    chain[column] = np.float64(weights[k, column]) * numbers[k] + chain[column]
        total = total + chain if first else chain
    return total


@pytest.mark.parametrize("config", ["tiny", "small"])
@pytest.mark.parametrize("name", ["4:8", "4:16"])
def test_a_chain_is_as_long_as_a_k_tile(name: str, config: str) -> None:
    """P rows of kept numbers, so 2 P (4:8) or 4 P (4:16) logical k; then PSUM adds. One chain over all K differs."""
    cfg, p = named(config), PATTERNS[name]
    m, n, depth = 6, 9, 3 * p.ratio * cfg.partitions - p.group
    program = find_workload("gemm").build(cfg, {"m": m, "k": depth, "n": n, "sparsity": name, "dtype": "fp16"}, 11)
    machine = GoldenMachine(cfg)
    machine.load(build_image(program))
    got = decode(machine.run().outputs["c"], "fp32")
    rng = np.random.default_rng(11)
    a, b = rng.standard_normal((m, depth), np.float32), rng.standard_normal((depth, n), np.float32)
    a, b = (decode(encode(v, "fp16"), "fp16") for v in (a, b))  # few sums of products of BF16 are rounded at all
    weights = prune(np.ascontiguousarray(a.T), p)
    assert np.array_equal(got, _chains(weights, b, p, cfg.partitions))
    assert not np.array_equal(got, _chains(weights, b, p, depth))
