"""Values that stay in SBUF from node to node, on the golden machine: what reads them otherwise gets them from HBM."""

import numpy as np
import pytest

from firmware.graph.ir import Node
from rtl.contract.memmap import Space
from verif.checks.graph_runs import TINY, error, normal, program_of, run, value

SCALE = 8**-0.5


def _attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, causal: bool) -> np.ndarray:
    """[tokens, heads, 8] each, in float64."""
    scores = np.einsum("shd,thd->hst", q, k) * SCALE
    if causal:
        scores = np.where(np.triu(np.ones(scores.shape[1:], bool), 1), -np.inf, scores)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("hst,thd->shd", weights / weights.sum(-1, keepdims=True), v)


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize(("kind", "limit"), [("fp32", 1e-4), ("bf16", 0.03)])
@pytest.mark.parametrize(("queries", "causal"), [(3, False), (3, True), (4, True)])
def test_attention_between_products(batch: int, kind: str, limit: float, queries: int, causal: bool) -> None:
    """All its ways: the pipeline, products with a softmax, one batch and several."""
    keys = 4
    x, y, w, u = (normal(batch * queries, 8), normal(batch * keys, 8, seed=1), normal(8, 16, seed=2) / 3, normal(16, 8))
    q, k, c = (value(n, (batch * r, 16)) for n, r in (("q", queries), ("k", keys), ("c", queries)))
    out = value("out", (batch * queries, 8))
    deep = {n: value(f"{n}4", (batch, r, 2, 8)) for n, r in (("q", queries), ("k", keys), ("c", queries))}
    how = {"kind": kind, "causal": causal, "heads_last": ("q", "k", "v", "out")}
    nodes = [
        Node("matmul", {"a": value("x", x.shape), "b": value("w", w.shape)}, q, {"kind": kind}),
        Node("matmul", {"a": value("y", y.shape), "b": value("w", w.shape)}, k, {"kind": kind}),
        Node("reshape", {"x": q}, deep["q"]),
        Node("reshape", {"x": k}, deep["k"]),
        Node("attention", {"q": deep["q"], "k": deep["k"], "v": deep["k"]}, deep["c"], how),
        Node("reshape", {"x": deep["c"]}, c),
        Node("matmul", {"a": c, "b": value("u", u.shape)}, out, {"kind": kind}),
    ]
    (got,) = run(nodes, {"x": x, "y": y}, [out], {"w": w, "u": u})
    heads = [a.astype(np.float64).reshape(batch, -1, 2, 8) for a in (x @ w, y @ w)]
    wanted = np.concatenate([_attention(a, b, b, causal).reshape(queries, 16) @ u for a, b in zip(*heads, strict=True)])
    assert error(got, wanted) < limit


@pytest.mark.parametrize("tokens", [5, 8, 9])
def test_no_value_of_few_rows_goes_to_hbm(tokens: int) -> None:
    """A norm whose value three products and a residual read; 8 rows is what `tiny` has."""
    x, w, gain, shift = normal(tokens, 16), normal(16, 16, seed=1) / 4, normal(16, seed=2), normal(16, seed=3)
    v = {n: value(n, (tokens, 16)) for n in ("a", "n", "p", "q", "r", "s", "out")}
    weights, vectors = value("w", w.shape), {"gain": value("gain", (16,)), "shift": value("shift", (16,))}
    products = [Node("matmul", {"a": v["n"], "b": weights}, v[n], {"kind": "bf16"}) for n in "pqr"]
    nodes = [
        Node("matmul", {"a": value("x", x.shape), "b": weights}, v["a"], {"kind": "bf16"}),
        Node("layernorm", {"x": v["a"], **vectors}, v["n"]),
        *products,
        Node("rmsnorm", {"x": v["p"], "residual": v["n"]}, v["s"]),
        Node("layernorm", {"x": v["q"], "residual": v["r"], **vectors}, value("t", x.shape)),
        Node("layernorm", {"x": v["s"], "residual": value("t", x.shape)}, v["out"]),
    ]
    arrays, constants = {"x": x}, {"w": w, "gain": gain, "shift": shift}

    def norm(a: np.ndarray, mean: bool = True) -> np.ndarray:
        a = a - a.mean(1, keepdims=True) if mean else a
        return a / np.sqrt((a * a).mean(1, keepdims=True) + 1e-5)

    n = norm(x.astype(np.float64) @ w) * gain + shift
    p = n @ w
    wanted = norm(norm(p + n, mean=False) + norm(p + p) * gain + shift)
    assert error(run(nodes, arrays, [v["out"]], constants)[0], wanted) < 0.05
    rings = program_of(nodes, arrays, [v["out"]], constants).rings
    stored = {d.destination.tensor for ring in rings for d in ring if d.destination.space == Space.HBM}
    assert (len(stored) == 1) == (tokens <= min(TINY.tensor.rows, TINY.tensor.cols))


@pytest.mark.parametrize("way", ["other rows", "turned", "added", "a deep product"])
def test_other_readers_find_it_in_hbm(way: str) -> None:
    wide = 900 if way == "a deep product" else 16
    x, w = normal(4, 8), normal(8, wide, seed=1) / 3
    deep = normal(wide, 8, seed=2) / wide**0.5
    made, out = value("made", (4, wide)), value("out", (4, 8))
    first = Node("matmul", {"a": value("x", x.shape), "b": value("w", w.shape)}, made, {"kind": "bf16"})
    exact, constants = x.astype(np.float64) @ w, {"w": w, "u": deep}
    if way == "other rows":
        flat, out = value("flat", (8, 8)), value("out", (8, 8))
        constants["u"] = u = deep[:8]
        more = [
            Node("reshape", {"x": made}, flat),
            Node("matmul", {"a": flat, "b": value("u", u.shape)}, out, {"kind": "bf16"}),
        ]
        wanted = exact.reshape(8, 8) @ u
    elif way == "turned":
        out, u = value("out", (16, 8)), normal(4, 8, seed=3)
        constants["u"] = u
        more = [Node("matmul", {"a": made, "b": value("u", u.shape)}, out, {"kind": "bf16", "transpose_a": True})]
        wanted = exact.T @ u
    elif way == "added":
        half, u = value("half", (4, 8)), constants["u"]
        more = [
            Node("matmul", {"a": made, "b": value("u", u.shape)}, half, {"kind": "bf16"}),
            Node("binary", {"a": half, "b": half}, out, {"op": "multiply"}),
        ]
        wanted = (exact @ u) ** 2
    else:
        more = [Node("matmul", {"a": made, "b": value("u", deep.shape)}, out, {"kind": "bf16"})]
        wanted = exact @ deep
    assert error(run([first, *more], {"x": x}, [out], constants)[0], wanted) < 0.03
