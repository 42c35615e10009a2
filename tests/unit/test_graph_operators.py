"""Operators of graphs on the golden machine, against float64: any shapes, formats, what is refused."""

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firmware.graph.ir import Node
from firmware.graph.supported import OPERATORS, why_not
from firmware.views import KernelError
from verif.checks.graph_runs import TINY, error, normal, one, program_of, run, value

FP32, BF16 = 1e-5, 2e-2  # of the largest number
ERF = np.vectorize(math.erf)

FUNCTIONS: dict[str, Any] = {
    "tanh": np.tanh, "negative": np.negative, "abs": np.abs, "square": np.square, "exp": np.exp,
    "gelu": lambda x: x * (1 + ERF(x / np.sqrt(2))) / 2, "reciprocal": lambda x: 1 / x,
    "silu": lambda x: x / (1 + np.exp(-x)), "relu": lambda x: np.maximum(x, 0),
}  # fmt: skip
BINARY: dict[str, Any] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "maximum": np.maximum,
    "minimum": np.minimum, "equal": np.equal, "not_equal": np.not_equal, "greater": np.greater, "less": np.less,
    "greater_equal": np.greater_equal, "less_equal": np.less_equal,
}  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("shape", [(), (7,), (1009,), (3, 5, 70)])
def test_functions(function: str, shape: tuple[int, ...]) -> None:
    x = normal(*shape) + 3 * (function == "reciprocal")
    got = one("unary", {"x": (x, "fp32")}, shape, function=function)
    assert error(got, FUNCTIONS[function](x.astype(np.float64))) < FP32


@pytest.mark.parametrize("op", BINARY)
@pytest.mark.parametrize(
    ("a", "b"), [((20, 30), (30,)), ((2, 1, 4, 1), (1, 3, 1, 5)), ((), (4, 5)), ((3, 4000), (3, 1))]
)
def test_two_operands_broadcast(op: str, a: tuple[int, ...], b: tuple[int, ...]) -> None:
    x, y = normal(*a), np.round(normal(*b, seed=1), 1) + 4
    wanted = BINARY[op](x.astype(np.float64), y.astype(np.float64))
    dtype = "uint8" if wanted.dtype == bool else "fp32"
    assert error(one("binary", {"a": (x, "fp32"), "b": (y, "fp32")}, wanted.shape, dtype, op=op), wanted) < FP32


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 9), st.booleans(), st.booleans()), min_size=1, max_size=5), st.integers(0, 5))
def test_any_broadcast(axes: list[tuple[int, bool, bool]], left_out: int) -> None:
    a = tuple(1 if one_ else n for n, one_, _ in axes)
    b = tuple(1 if one_ else n for n, _, one_ in axes)[left_out:]
    x, y = normal(*a), normal(*b, seed=1)
    wanted = x.astype(np.float64) - y
    assert error(one("binary", {"a": (x, "fp32"), "b": (y, "fp32")}, wanted.shape, op="subtract"), wanted) < FP32


@pytest.mark.parametrize("op", ["add", "subtract", "divide", "less"])
@pytest.mark.parametrize("first", [False, True])
def test_a_number_is_an_operand(op: str, first: bool) -> None:
    x = normal(9, 20) + 5
    wanted = BINARY[op](2.5, x.astype(np.float64)) if first else BINARY[op](x.astype(np.float64), 2.5)
    dtype = "uint8" if op == "less" else "fp32"
    got = one("binary", {"b" if first else "a": (x, "fp32")}, x.shape, dtype, op=op, scalar=2.5)
    assert error(got, wanted) < FP32


def test_truth_values() -> None:
    x, y = normal(9, 20) > 0, normal(20, seed=1) > 0
    for op, function in (("and", np.logical_and), ("or", np.logical_or), ("xor", np.logical_xor)):
        got = one("binary", {"a": (x, "uint8"), "b": (y, "uint8")}, x.shape, "uint8", op=op)
        assert np.array_equal(got, function(x, y))
    assert np.array_equal(one("unary", {"x": (x, "uint8")}, x.shape, "uint8", function="not"), ~x)


def test_int32_is_equal_bit_for_bit() -> None:
    x = np.array([[1 << 30, 7, -3], [(1 << 30) + 1, -1, 0]])
    y = np.array([1 << 30, 7, -4])
    got = one("binary", {"a": (x, "int32"), "b": (y, "int32")}, x.shape, "uint8", op="equal")
    assert np.array_equal(got, x == y)
    got = one("binary", {"a": (x, "int32")}, x.shape, "uint8", op="not_equal", scalar=(1 << 30) + 1)
    assert np.array_equal(got, x != (1 << 30) + 1)


PRODUCTS: list[tuple[tuple[int, ...], tuple[int, ...], bool, bool]] = [
    ((5, 7), (7, 9), False, False), ((2, 3, 13, 17), (2, 3, 17, 11), False, False),
    ((2, 13, 17), (17, 11), False, False),
    ((2, 17, 13), (2, 11, 17), True, True), ((17, 13), (3, 17, 70), True, False), ((1, 1500), (1500, 1), False, False),
    ((9, 600), (130, 600), False, True),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b", "turn_a", "turn_b"), PRODUCTS)
@pytest.mark.parametrize("kind", ["fp32", "bf16"])
def test_products(a: tuple[int, ...], b: tuple[int, ...], turn_a: bool, turn_b: bool, kind: str) -> None:
    x, y = normal(*a), normal(*b, seed=1)
    wanted = (x.swapaxes(-1, -2) if turn_a else x).astype(np.float64) @ (y.swapaxes(-1, -2) if turn_b else y)
    options = {"kind": kind, "transpose_a": turn_a, "transpose_b": turn_b}
    got = one("matmul", {"a": (x, "fp32"), "b": (y, "fp32")}, wanted.shape, **options)
    assert error(got, wanted) < (FP32 if kind == "fp32" else BF16)


@pytest.mark.parametrize(
    ("types", "kind"), [(("fp32", "bf16"), "fp32"), (("bf16", "fp16"), "fp32"), (("fp32", "fp16"), "bf16")]
)
@pytest.mark.parametrize("turn_b", [False, True])
def test_deep_operands_of_two_formats(types: tuple[str, str], kind: str, turn_b: bool) -> None:
    x, y = np.round(normal(9, 1500)), np.round(normal(1500, 5, seed=1))
    held = np.ascontiguousarray(y.T) if turn_b else y
    inputs = {"a": (x, types[0]), "b": (held, types[1])}
    assert error(one("matmul", inputs, (9, 5), kind=kind, transpose_b=turn_b), x.astype(np.float64) @ y) < FP32


@settings(max_examples=15, deadline=None)
@given(
    st.integers(1, 40),
    st.integers(1, 40),
    st.integers(1, 150),
    st.booleans(),
    st.sampled_from(["fp32", "bf16", "fp16"]),
)
def test_constant_weights(rows: int, depth: int, columns: int, turned: bool, dtype: str) -> None:
    x, w, b = normal(rows, depth), normal(depth, columns, seed=1), normal(columns, seed=2)
    types = {"fp32": np.float32, "bf16": ml_dtypes.bfloat16, "fp16": np.float16}
    rounded = x.astype(types[dtype]).astype(ml_dtypes.bfloat16).astype(np.float64)
    wanted = np.tanh(rounded @ w.astype(ml_dtypes.bfloat16).astype(np.float64) + b)
    held = w.T if turned else w
    inputs = {"a": value("x", x.shape, dtype), "b": value("w", held.shape), "bias": value("b", b.shape)}
    out = value("y", wanted.shape)
    node = Node("matmul", inputs, out, {"kind": "bf16", "transpose_b": turned, "activation": "tanh"})
    got = run([node], {"x": x}, [out], {"w": np.ascontiguousarray(held), "b": b})[0]
    assert np.max(np.abs(got - wanted)) < 5e-6  # sums and the bias are FP32, operands alone are rounded


ATTENTION: list[tuple[tuple[int, int, int, int, int, int, int], bool, tuple[int, ...], tuple[str, ...]]] = [
    ((1, 2, 2, 9, 9, 5, 5), False, (), ()), ((2, 4, 2, 20, 20, 8, 8), True, (), ()),
    ((1, 2, 1, 5, 30, 4, 6), True, (), ()), ((2, 2, 2, 12, 12, 8, 8), False, (2, 1, 1, 12), ()),
    ((1, 2, 2, 12, 20, 8, 8), False, (1, 2, 12, 20), ("q", "k", "v", "out")),
    ((2, 2, 1, 12, 12, 16, 8), True, (), ("q", "out")),
]  # fmt: skip


@pytest.mark.parametrize(("sizes", "causal", "mask", "last"), ATTENTION)
@pytest.mark.parametrize("kind", ["fp32", "bf16"])
def test_attention(sizes: Any, causal: bool, mask: tuple[int, ...], last: tuple[str, ...], kind: str) -> None:
    b, h, g, s, t, d, e = sizes
    x = {"q": normal(b, h, s, d), "k": normal(b, g, t, d, seed=1), "v": normal(b, g, t, e, seed=2)}
    keys, values = np.repeat(x["k"], h // g, 1), np.repeat(x["v"], h // g, 1)
    scores = x["q"].astype(np.float64) @ keys.swapaxes(2, 3) / np.sqrt(d)
    if mask:
        x["mask"] = normal(*mask, seed=3)
        scores = scores + x["mask"]
    if causal:
        scores = np.where(np.tril(np.ones((s, t))) > 0, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    wanted = weights / weights.sum(-1, keepdims=True) @ values
    wanted = wanted.transpose(0, 2, 1, 3) if "out" in last else wanted
    x = {n: np.ascontiguousarray(a.transpose(0, 2, 1, 3)) if n in last else a for n, a in x.items()}
    options = {"kind": kind, "causal": causal, "heads_last": last}
    got = one("attention", {n: (a, "fp32") for n, a in x.items()}, wanted.shape, **options)
    assert error(got, wanted) < (FP32 if kind == "fp32" else BF16)


@pytest.mark.parametrize("hidden", [-np.inf, np.finfo(np.float32).min])
@pytest.mark.parametrize("kind", ["fp32", "bf16"])
def test_a_mask_hides_whole_blocks_of_keys(hidden: float, kind: str) -> None:
    q, k, v = (normal(1, 1, n, 8, seed=i) for i, n in enumerate((9, 40, 40)))
    mask = np.zeros((1, 1, 1, 40), np.float32)
    mask[..., :35] = hidden
    scores = q.astype(np.float64) @ k[:, :, 35:].swapaxes(2, 3) / np.sqrt(8)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    wanted = weights / weights.sum(-1, keepdims=True) @ v[:, :, 35:]
    inputs = {n: (a, "fp32") for n, a in {"q": q, "k": k, "v": v, "mask": mask}.items()}
    assert error(one("attention", inputs, wanted.shape, kind=kind), wanted) < (FP32 if kind == "fp32" else BF16)


@pytest.mark.parametrize("shape", [(5,), (20, 30), (2, 3, 1), (17, 3000)])
@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_softmax(shape: tuple[int, ...], dtype: str) -> None:
    x = normal(*shape)
    e = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    got = one("softmax", {"x": (x, dtype)}, shape, dtype)
    assert error(got, e / e.sum(-1, keepdims=True)) < (FP32 if dtype == "fp32" else BF16)


@pytest.mark.parametrize("op", ["layernorm", "rmsnorm"])
@pytest.mark.parametrize("shape", [(20, 30), (3, 5, 600), (9, 3000), (9, 7)])
@pytest.mark.parametrize("more", ["", "gain", "shift", "residual gain shift"])
def test_norms(op: str, shape: tuple[int, ...], more: str) -> None:
    arrays = {"x": normal(*shape) + 1, "residual": normal(*shape, seed=1)}
    arrays |= {"gain": normal(shape[-1], seed=2), "shift": normal(shape[-1], seed=3)}
    names = ["x", *(n for n in more.split() if n != "shift" or op == "layernorm")]
    x = sum(arrays[n].astype(np.float64) for n in ("x", "residual") if n in names)
    x = x - x.mean(-1, keepdims=True) if op == "layernorm" else x
    wanted = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5)
    wanted = wanted * (arrays["gain"] if "gain" in names else 1) + (arrays["shift"] if "shift" in names else 0)
    assert error(one(op, {n: (arrays[n], "fp32") for n in names}, shape, epsilon=1e-5), wanted) < 2 * FP32


@pytest.mark.parametrize("op", ["sum", "mean", "max", "min"])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [((20, 30), (1,)), ((20, 30), (0,)), ((20, 30), (0, 1)), ((2, 3, 4, 5), (0, 2)), ((2, 3, 4, 5), (1, -1)),
     ((3, 5000), (1,)), ((5000, 3), (0,)), ((2, 30, 40), (1,))],
)  # fmt: skip
def test_reductions(op: str, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    x = normal(*shape)
    for keep in (False, True):
        wanted = getattr(np, op)(x.astype(np.float64), axis=axes, keepdims=keep)
        assert error(one("reduce", {"x": (x, "fp32")}, wanted.shape, op=op, axes=axes), wanted) < FP32


@pytest.mark.parametrize(
    ("shape", "axes"), [((5, 7), (1, 0)), ((2, 3, 4, 5), (0, 2, 1, 3)), ((2, 3, 4, 5, 2), (4, 2, 0, 3, 1))]
)
@pytest.mark.parametrize("dtype", ["fp32", "uint8"])
def test_moves(shape: tuple[int, ...], axes: tuple[int, ...], dtype: str) -> None:
    x = np.round(np.abs(normal(*shape)) * 10)
    turned, flat, cut = (
        value("t", [shape[a] for a in axes], dtype),
        value("f", (x.size,), dtype),
        value("c", (2,), dtype),
    )
    starts, stops = [x.size // 2], [x.size // 2 + 4]
    nodes = [
        Node("permute", {"x": value("x", shape, dtype)}, turned, {"axes": axes}),
        Node("reshape", {"x": turned}, flat),
        Node("slice", {"x": flat}, cut, {"starts": starts, "stops": stops, "steps": [2]}),
    ]
    wanted = x.transpose(axes).reshape(-1)
    got = run(nodes, {"x": x}, [turned, flat, cut])
    assert np.array_equal(got[0], x.transpose(axes))
    assert np.array_equal(got[1], wanted) and np.array_equal(got[2], wanted[starts[0] : stops[0] : 2])


def test_cat_expand_fill_cast() -> None:
    x, y = normal(6, 1, 10), normal(6, 2, 10, seed=1)
    joined, wide, whole, ones = (
        value("j", (6, 3, 10)), value("e", (4, 6, 2, 10)), value("w", (6, 3, 10), "int32"),
        value("o", (3, 70), "int32"),
    )  # fmt: skip
    nodes = [
        Node("cat", {"0": value("x", x.shape), "1": value("y", y.shape)}, joined, {"axis": -2}),
        Node("expand", {"x": value("x", x.shape)}, wide),
        Node("cast", {"x": joined}, whole),
        Node("fill", {}, ones, {"scalar": -70000}),
    ]
    got = run(nodes, {"x": x, "y": y}, [joined, wide, whole, ones])
    wanted = np.concatenate([x, y], 1)
    assert np.array_equal(got[0], wanted) and np.array_equal(got[1], np.broadcast_to(x, wide.shape))
    assert np.array_equal(got[2], np.rint(wanted)) and np.array_equal(got[3], np.full((3, 70), -70000))


@pytest.mark.parametrize("given_", ["a b", "a", "b", ""])
def test_where(given_: str) -> None:
    c, a, b = normal(9, 20) > 0, normal(20, seed=1), normal(9, 1, seed=2)
    arrays: dict[str, tuple[np.ndarray, str]] = {"condition": (c, "uint8")}
    arrays |= {n: (x, "fp32") for n, x in (("a", a), ("b", b)) if n in given_}
    wanted = np.where(c, a if "a" in given_ else 2, b if "b" in given_ else -np.inf)
    got = one("where", arrays, c.shape, scalar_a=2.0, scalar_b=-np.inf)
    assert np.array_equal(got, wanted.astype(np.float32))


def test_every_operator_has_a_test() -> None:
    tested = {"matmul", "attention", "softmax", "layernorm", "rmsnorm", "unary", "binary", "where", "reduce", "reshape"}
    assert set(OPERATORS) == tested | {"permute", "expand", "slice", "cat", "cast", "fill"}


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "words"),
    [
        (
            "binary",
            {"a": value("a", (2,), "int32"), "b": value("b", (2,), "int32")},
            {"op": "add"},
            "int32 would be rounded",
        ),
        ("binary", {"a": value("a", (2,))}, {"op": "power", "scalar": 2}, "no operator 'power'"),
        ("unary", {"x": value("x", (2,))}, {"function": "gamma"}, "no function 'gamma'"),
        ("conv", {"x": value("x", (2,))}, {}, "no operator 'conv'"),
        ("softmax", {"x": value("x", (2,), "int32")}, {}, "not int32"),
        ("matmul", {"a": value("a", (2, 3)), "b": value("b", (3, 2))}, {"kind": "fp8"}, "its kind is fp8"),
        ("unary", {"x": value("x", (0, 2))}, {"function": "abs"}, "at least 1 element"),
        ("reshape", {"x": value("x", (2, 2))}, {}, "4 elements"),
    ],
)
def test_what_is_refused(op: str, inputs: dict[str, Any], attributes: dict[str, Any], words: str) -> None:
    out = value("y", (2,), "fp32")
    node = Node(op, inputs, out, attributes, origin="model.py:7", label="aten.x")
    assert words in (why_not(TINY, node) or "")
    with pytest.raises(KernelError, match=r"^aten.x at model.py:7: ") as caught:
        program_of([node], {v.name: np.zeros(v.shape) for v in inputs.values()}, [out])
    assert words in str(caught.value) and "\n" not in str(caught.value)
