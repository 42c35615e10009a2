"""Matrix products of any shape on the golden machine, against float64 and against exact integers."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firmware.image import build_image
from firmware.kernel import KernelError
from firmware.kernels.gemm import gemm
from firmware.kernels.tiling import even_spans, moving_cost
from firmware.numbers import decode, encode
from firmware.program import Program
from rtl.contract.config import Config, load, named
from rtl.contract.isa import Opcode, Queue
from verif.golden.machine import GoldenMachine

TINY = named("tiny")
CRAMPED = load("tiny", ["sbuf.partition_bytes=1024", "tensor.moving_max=32"])


def operands(m: int, k: int, n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)


def run(program: Program, seed: int | None = None) -> dict[str, np.ndarray]:
    machine = GoldenMachine(program.config, seed)
    machine.load(build_image(program))
    result = machine.run()
    assert result.faults == []
    return result.outputs


def result_of(program: Program, out: str = "fp32", seed: int | None = None) -> np.ndarray:
    """C [M, N] as float32."""
    outputs = run(program, seed)
    return decode(outputs["c"] if "c" in outputs else outputs["c_t"].T, out)


def nearest32(x: Fraction) -> Fraction:
    """Nearest FP32 value of a small fraction, ties to even: plain integers, no float."""
    if x == 0:
        return x
    exponent = 0
    while abs(x) / Fraction(2) ** exponent >= 1 << 24:
        exponent += 1
    while abs(x) / Fraction(2) ** exponent < 1 << 23 and exponent > -149:
        exponent -= 1
    scaled = x / Fraction(2) ** exponent
    return round(scaled) * Fraction(2) ** exponent  # round() of a Fraction ties to even


def exact_chain(a: np.ndarray, b: np.ndarray, rows: int) -> float:
    """a . b in the machine's order: chains of `rows`, each step rounded once, then added in PSUM."""
    total: Fraction | None = None
    for at in range(0, len(a), rows):
        acc = Fraction(0)
        for x, y in zip(a[at : at + rows], b[at : at + rows], strict=True):
            acc = nearest32(acc + Fraction(float(x)) * Fraction(float(y)))
        total = acc if total is None else nearest32(total + acc)
    assert total is not None
    return float(total)


def check_product(cfg: Config, m: int, k: int, n: int, **options: object) -> Program:
    a, b = operands(m, k, n, m * 7 + k * 3 + n)
    program = gemm(cfg, a, b, **options)  # type: ignore[arg-type]
    dtype, out = str(options.get("dtype", "bf16")), str(options.get("out", "fp32"))
    c = result_of(program, out)
    exact = decode(encode(a, dtype), dtype).astype(np.float64) @ decode(encode(b, dtype), dtype).astype(np.float64)
    step = {"fp32": 2.0**-23, "fp16": 2.0**-10, "bf16": 2.0**-7}[out]
    scale = np.abs(decode(encode(a, dtype), dtype)) @ np.abs(decode(encode(b, dtype), dtype))
    # FP16 has steps of 2^-24 where it is subnormal.
    bound = scale * (2.0**-23) * (k + 4) + np.abs(exact) * step + (2.0**-24 if out == "fp16" else 0)
    assert np.all(np.abs(c - exact) <= bound)
    return program


@settings(max_examples=40, deadline=None)
@given(
    m=st.integers(1, 40),
    k=st.integers(1, 40),
    n=st.integers(1, 150),
    dtype=st.sampled_from(("bf16", "fp16")),
    out=st.sampled_from(("fp32", "bf16", "fp16")),
    swap=st.booleans(),
)
def test_any_shape(m: int, k: int, n: int, dtype: str, out: str, swap: bool):
    check_product(TINY, *((n, k, m) if swap else (m, k, n)), dtype=dtype, out=out)


@settings(max_examples=15, deadline=None)
@given(m=st.integers(1, 50), k=st.integers(1, 300), n=st.integers(1, 90))
def test_any_shape_where_little_fits(m: int, k: int, n: int):
    check_product(CRAMPED, m, k, n)


@pytest.mark.parametrize(("m", "k", "n"), [(1, 1, 1), (8, 8, 64), (9, 17, 65), (3, 24, 5)])
@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_exact_order_of_additions(m: int, k: int, n: int, dtype: str):
    a, b = operands(m, k, n, 5)
    c = result_of(gemm(TINY, a, b, dtype=dtype))
    a, b = decode(encode(a, dtype), dtype), decode(encode(b, dtype), dtype)
    rng = np.random.default_rng(1)
    for _ in range(12):
        i, j = int(rng.integers(m)), int(rng.integers(n))
        assert float(c[i, j]) == exact_chain(a[i], b[:, j], TINY.tensor.rows)


@pytest.mark.parametrize("cfg", [TINY, CRAMPED, named("small")], ids=["tiny", "cramped", "small"])
@pytest.mark.parametrize(("m", "k", "n"), [(20, 30, 130), (70, 40, 9)])
def test_any_legal_order_gives_the_same_bits(cfg: Config, m: int, k: int, n: int):
    a, b = operands(m, k, n)
    program = gemm(cfg, a, b)
    reference = run(program)
    for seed in range(8):
        again = run(program, seed)
        assert all(np.array_equal(reference[name], again[name]) for name in reference), f"seed {seed}"


def test_the_moving_side():
    wide, tall = gemm(TINY, *operands(8, 8, 64)), gemm(TINY, *operands(64, 8, 8))
    assert wide.tensors["c"].shape == (8, 64) and tall.tensors["c_t"].shape == (8, 64)
    assert wide.tensor_columns == tall.tensor_columns == 64
    full = named("full")
    assert moving_cost(full, 512, [128], [2048])[0] == 8192
    assert moving_cost(full, 512, [2048], [128]) > moving_cost(full, 512, [128], [2048]), "more, shorter tiles"
    assert any("C^T" in note for note in tall.notes) and any("host transposes A" in note for note in wide.notes)


def test_full_size_reads_each_operand_once():
    program = gemm(named("full"), *operands(2048, 512, 128))
    assert program.hbm_read_bytes == (2048 + 128) * 512 * 2
    assert program.hbm_written_bytes == 2048 * 128 * 4
    assert program.tensor_columns == 8192
    assert program.macs == 2048 * 512 * 128
    rows = {d.row_bytes for d in program.rings[0]}
    assert min(rows) >= 256


def test_resident_waits_for_all_operands():
    a, b = operands(16, 16, 64)
    program = check_product(TINY, 16, 16, 64, resident=True)
    loads = len(program.rings[0])
    first = program.queues[Queue.TENSOR][0]
    assert first.opcode == Opcode.NOP
    assert (5, loads) in [(w.semaphore, w.value) for w in first.waits]
    with pytest.raises(KernelError, match="resident operands need .* run without resident"):
        gemm(CRAMPED, *operands(64, 256, 64), resident=True)
    assert result_of(gemm(TINY, a, b, resident=True)).shape == (16, 64)


@pytest.mark.parametrize(("name", "shape"), [("m", (0, 4, 4)), ("k", (4, 0, 4)), ("n", (4, 4, 0))])
def test_sizes_of_zero(name: str, shape: tuple[int, int, int]):
    with pytest.raises(KernelError, match=f"^{name} must be at least 1, not 0$"):
        gemm(TINY, *operands(*shape))


@given(total=st.integers(1, 5000), limit=st.sampled_from((8, 32, 128, 512)))
def test_spans_cover_all(total: int, limit: int):
    spans = even_spans(3, total, limit)
    assert [s.start for s in spans] == [0, *np.cumsum([s.size for s in spans])[:-1]]
    assert sum(s.size for s in spans) == total
    assert all(1 <= s.size <= limit and s.source == 3 for s in spans)
    assert len(spans) <= -(-total // limit)
