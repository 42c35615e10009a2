"""Kernels of decoder layers against float64 of the BF16 operands, computed here from the definitions alone."""

import math
from collections.abc import Mapping

import ml_dtypes
import numpy as np
import pytest

from firmware.image import build_image
from firmware.kernel import KernelError
from firmware.kernels.attention import attention
from firmware.kernels.elementwise import ELEMENTWISE, elementwise
from firmware.kernels.gated_ffn import gated_ffn
from firmware.kernels.rope import rope
from firmware.numbers import decode
from firmware.program import Program
from firmware.workloads import WORKLOADS
from rtl.contract.config import load, named
from verif.golden.machine import GoldenMachine

TINY = named("tiny")
WIDE = load("tiny", ["sbuf.partition_bytes=32768"])


def rounded(x: np.ndarray) -> np.ndarray:
    """The nearest BF16, in float64."""
    return x.astype(ml_dtypes.bfloat16).astype(np.float64)


def outputs(program: Program) -> Mapping[str, np.ndarray]:
    """What the golden machine makes of it, and the kernel's own view of its error, which must be finite."""
    machine = GoldenMachine(program.config)
    machine.load(build_image(program))
    result = machine.run()
    assert result.faults == []
    assert program.metrics(result.outputs)["cosine"] > 0.9999
    return result.outputs


def attended(q: np.ndarray, k: np.ndarray, v: np.ndarray, causal: bool, window: int | None, sinks: np.ndarray | None):
    """Attention of a head and a query at a time: group by group, from the first key of the window to its own."""
    q, k, v = rounded(q), rounded(k), rounded(v)
    found = np.zeros((*q.shape[:2], v.shape[2]))
    for head, query in np.ndindex(q.shape[:2]):
        shared = head * k.shape[0] // q.shape[0]
        place = k.shape[1] - q.shape[1] + query
        low = 0 if window is None else max(0, place - window + 1)
        seen = slice(low, place + 1 if causal else None)
        scores = k[shared, seen] @ q[head, query] / math.sqrt(q.shape[2])
        beside = -np.inf if sinks is None else sinks[head]
        top = max(scores.max(), beside)
        weights = np.exp(scores - top)
        found[head, query] = weights @ v[shared, seen] / (weights.sum() + np.exp(beside - top))
    return found


SHAPES = {
    "groups": dict(heads=4, shared=2, queries=24, keys=24, head=16, causal=True),
    "one for all": dict(heads=6, shared=1, queries=40, keys=40, head=16, values=8),
    "decoded token": dict(heads=4, shared=2, queries=1, keys=75, head=16, causal=True),
    "decoded token, window": dict(heads=4, shared=2, queries=1, keys=75, head=16, causal=True, window=10, sinks=1),
    "last queries": dict(heads=2, shared=2, queries=20, keys=50, head=24, values=16, causal=True),
    "window": dict(heads=2, shared=1, queries=100, keys=100, head=16, causal=True, window=13, sinks=1),
    "window of the last queries": dict(heads=2, shared=1, queries=13, keys=45, head=16, causal=True, window=3),
    "window of one": dict(heads=1, shared=1, queries=40, keys=40, head=16, causal=True, window=1),
    "sinks": dict(heads=2, shared=2, queries=24, keys=24, head=16, sinks=1),
    "head of several K tiles": dict(heads=1, shared=1, queries=24, keys=24, head=24, values=16, causal=True),
    "192 and 128": dict(heads=1, shared=1, queries=9, keys=9, head=192, values=64, causal=True),
}  # fmt: skip


@pytest.mark.parametrize("strong", [1, 8])
@pytest.mark.parametrize("name", SHAPES)
def test_attention_of_groups_windows_and_sinks(name: str, strong: int) -> None:
    """Exponentials are rounded to BF16, all else is FP32: a result is off by at most 2^-8 of the largest value."""
    shape = {"causal": False, "window": None, "sinks": 0} | SHAPES[name]
    rng = np.random.default_rng(len(name))
    values = shape.get("values", shape["head"])
    q = strong * rng.standard_normal((shape["heads"], shape["queries"], shape["head"]), np.float32)
    k = rng.standard_normal((shape["shared"], shape["keys"], shape["head"]), np.float32)
    v = rng.standard_normal((shape["shared"], shape["keys"], values), np.float32)
    sinks = 3 * rng.standard_normal(shape["heads"], np.float32) if shape["sinks"] else None
    how = {"causal": shape["causal"], "window": shape["window"], "sinks": sinks}
    found = decode(outputs(attention(WIDE, q, k, v, **how))["context"], "fp32")
    error = found.reshape(q.shape[0], q.shape[1], values) - attended(q, k, v, **how)
    assert np.abs(error).max() <= 2**-8 * np.abs(v).max()


def test_macs_count_what_is_seen() -> None:
    """Of a causal window of 3 over 5 tokens 1 + 2 + 3 + 3 + 3 keys."""
    parameters = WORKLOADS["attention"].parse(["seq=5", "head=8", "heads=2", "causal=true", "window=3"])
    assert WORKLOADS["attention"].build(TINY, parameters).macs == 12 * (8 + 8) * 2


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (["heads=3", "kv_heads=2", "seq=8"], "3 heads are no multiple of the 2 heads of keys"),
        (["seq=8", "window=3"], "needs causal=true"),
        (["seq=8", "queries=9", "causal=true"], "at most 8 queries, not 9"),
        (["text=a", "window=3"], "text and window exclude each other"),
        (["seq=8", "values=65"], "head must be at most tensor.moving_max \\(64\\), not 65"),
    ],
)
def test_what_does_not_go_together(settings: list[str], sentence: str) -> None:
    with pytest.raises(KernelError, match=sentence):
        WORKLOADS["attention"].build(TINY, WORKLOADS["attention"].parse(settings))


@pytest.mark.parametrize("work", ["bf16", "fp32"])
@pytest.mark.parametrize(("tokens", "heads", "first"), [(20, 3, 0), (8, 1, 1000), (3, 5, 70), (1, 9, 4095)])
def test_rope_turns_by_exact_angles(tokens: int, heads: int, first: int, work: str) -> None:
    """Complex numbers turned by e^(i angle): a statement that no table of cos and sin is in."""
    head, theta = 16, 500000.0
    x = np.random.default_rng(tokens).standard_normal((tokens, heads, head), np.float32)
    found = decode(outputs(rope(WIDE, x, first=first, theta=theta, work=work))["y"], "bf16").reshape(x.shape)
    low, high = rounded(x)[..., : head // 2], rounded(x)[..., head // 2 :]
    angle = (first + np.arange(tokens))[:, None, None] * theta ** -(2 * np.arange(head // 2) / head)
    exact = (low + 1j * high) * np.exp(1j * angle)
    both = np.concatenate([exact.real, exact.imag], axis=2)
    size = np.tile(np.abs(low) + np.abs(high), 2)
    bound = 3.02 * 2**-8 * size if work == "bf16" else 2**-8 * np.abs(both) + 2**-20 * size
    assert np.all(np.abs(found - both) <= bound)


def test_rope_takes_heads_in_parts_where_sbuf_is_small() -> None:
    x = np.random.default_rng(2).standard_normal((10, 24, 32), np.float32)
    small, large = (decode(outputs(rope(cfg, x))["y"], "bf16") for cfg in (TINY, WIDE))
    assert np.array_equal(small, large)


@pytest.mark.parametrize(("tokens", "width", "hidden"), [(20, 40, 72), (8, 8, 8), (1, 24, 20), (70, 16, 33)])
def test_gated_ffn(tokens: int, width: int, hidden: int) -> None:
    """An inner value is rounded twice (2^-7 together) and its silu comes from a table (2^-12): so much of the sum of
    the products' sizes, and FP32 sums beside it."""
    rng = np.random.default_rng(tokens)
    x = rng.standard_normal((tokens, width), np.float32)
    gate, up = (rng.standard_normal((hidden, width), np.float32) for _ in range(2))
    down = rng.standard_normal((width, hidden), np.float32)
    found = decode(outputs(gated_ffn(TINY, x, gate, up, down))["y"], "fp32")
    g, u = rounded(x) @ rounded(gate).T, rounded(x) @ rounded(up).T
    inner = g / (1 + np.exp(-g)) * u
    error = np.abs(found - inner @ rounded(down).T)
    assert np.all(error <= (2**-7 + 2**-11) * (np.abs(inner) @ np.abs(rounded(down).T)) + 1e-4)


@pytest.mark.parametrize(("rows", "columns"), [(8, 512), (1, 99), (3, 7), (5, 2600)])
@pytest.mark.parametrize("op", ELEMENTWISE)
def test_elementwise(op: str, rows: int, columns: int) -> None:
    """Within two roundings to BF16 and 2^-11 for the table of numbers computed here."""
    rng = np.random.default_rng(rows)
    a, b = (3 * rng.standard_normal((rows, columns), np.float32) for _ in range(2))
    found = decode(outputs(elementwise(WIDE, a, b, op=op))["y"], "bf16").reshape(a.shape)
    x, y = rounded(a), rounded(b)
    erf = np.array([math.erf(one / math.sqrt(2)) for one in x.ravel()]).reshape(x.shape)
    silu = x / (1 + np.exp(-x))
    exact = {"add": x + y, "swiglu": silu * y, "gelu": x * (1 + erf) / 2, "silu": silu}[op]
    assert np.all(np.abs(found - exact) <= (2**-7 + 2**-11) * np.abs(exact) + 1e-6)
