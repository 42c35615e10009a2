"""Which nodes become one, and that the graph's values stay what they were."""

import numpy as np
import pytest

from firmware.graph.emit import emit
from firmware.graph.fuse import fuse
from firmware.graph.ir import Graph, Node, Value
from firmware.kernel import Kernel
from firmware.views import KernelError
from verif.checks.graph_runs import TINY, error, graph_of, normal, program_of, run, value

X, W, B = normal(2, 5, 12), normal(20, 12, seed=1), normal(20, seed=2)


def linear() -> tuple[list[Node], Value]:
    """tanh(x W^T + b) as front ends make it: flat rows, and shapes between."""
    turned, flat = value("wt", (12, 20)), value("flat", (10, 12))
    sums, deep, biased, out = (
        value(n, s) for n, s in (("s", (10, 20)), ("d", (2, 5, 20)), ("p", (2, 5, 20)), ("y", (2, 5, 20)))
    )
    nodes = [
        Node("permute", {"x": value("w", W.shape)}, turned, {"axes": (1, 0)}),
        Node("reshape", {"x": value("x", X.shape)}, flat),
        Node("matmul", {"a": flat, "b": turned}, sums, {"kind": "fp32"}, "m.py:1", "mm"),
        Node("reshape", {"x": sums}, deep),
        Node("binary", {"a": value("b", B.shape), "b": deep}, biased, {"op": "add"}, "m.py:2", "add"),
        Node("unary", {"x": biased}, out, {"function": "tanh"}, "m.py:3", "tanh"),
    ]
    return nodes, out


def test_a_linear_layer_is_one_product() -> None:
    nodes, out = linear()
    made = fuse(graph_of(nodes, {"x": X}, [out], {"w": W, "b": B}))
    assert [n.op for n in made.nodes if n.op != "reshape"] == ["matmul"]
    product = next(n for n in made.nodes if n.op == "matmul")
    assert product.attributes == {"kind": "fp32", "transpose_b": True, "activation": "tanh"}
    assert product.inputs["bias"].name == "b" and product.label == "mm + add + tanh"
    got = run(nodes, {"x": X}, [out], {"w": W, "b": B})[0]
    assert error(got, np.tanh(X.astype(np.float64) @ W.T + B)) < 1e-5


def test_a_value_that_is_used_elsewhere_stays() -> None:
    nodes, out = linear()
    biased = nodes[4].output
    made = fuse(graph_of(nodes, {"x": X}, [out, biased], {"w": W, "b": B}))
    assert [n.op for n in made.nodes if n.op != "reshape"] == ["matmul", "unary"]
    got = run(nodes, {"x": X}, [out, biased], {"w": W, "b": B})
    wanted = X.astype(np.float64) @ W.T + B
    assert error(got[1], wanted) < 1e-5 and error(got[0], np.tanh(wanted)) < 1e-5


def test_a_residual_joins_its_norm_unless_the_sum_goes_on() -> None:
    a, b, total, out = (value(n, (9, 16)) for n in "abty")
    nodes = [
        Node("binary", {"a": a, "b": b}, total, {"op": "add"}),
        Node("rmsnorm", {"x": total}, out, {"epsilon": 1e-6}),
    ]
    assert len(fuse(graph_of(nodes, {"a": X, "b": X}, [out], {})).nodes) == 1
    assert len(fuse(graph_of(nodes, {"a": X, "b": X}, [out, total], {})).nodes) == 2


def test_heads_lie_last_around_attention() -> None:
    heads, names = (0, 2, 1, 3), ("q", "k", "v")
    given = {n: value(n, (1, 12, 2, 8)) for n in names}
    turned = {n: value(f"{n}_t", (1, 2, 12, 8)) for n in names}
    context, out = value("c", (1, 2, 12, 8)), value("y", (1, 12, 2, 8))
    nodes = [Node("permute", {"x": given[n]}, turned[n], {"axes": heads}) for n in names]
    nodes += [
        Node("attention", turned, context, {"kind": "bf16"}),
        Node("permute", {"x": context}, out, {"axes": heads}),
    ]
    arrays = {n: normal(1, 12, 2, 8, seed=i) for i, n in enumerate(names)}
    made = fuse(graph_of(nodes, arrays, [out], {}))
    assert len(made.nodes) == 1 and set(made.nodes[0].attributes["heads_last"]) == {*names, "out"}
    q, k, v = (x.astype(np.float64).transpose(heads) for x in arrays.values())
    e = np.exp(q @ k.swapaxes(2, 3) / np.sqrt(8))
    assert error(run(nodes, arrays, [out])[0], (e / e.sum(-1, keepdims=True) @ v).transpose(heads)) < 0.02


def test_lines_of_the_user_are_on_instructions_and_copies() -> None:
    nodes, out = linear()
    program = program_of(nodes, {"x": X}, [out], {"w": W, "b": B})
    lines = {i.source for queue in program.queues.values() for i in queue} | {
        d.origin for r in program.rings for d in r
    }
    assert "m.py:1 mm + add + tanh" in lines


def test_inner_values_are_no_outputs() -> None:
    a, b, y = (value(n, (9, 16)) for n in "aby")
    nodes = [Node("unary", {"x": a}, b, {"function": "exp"}), Node("unary", {"x": b}, y, {"function": "abs"})]
    program = program_of(nodes, {"a": X[0, :1, :1].repeat(9, 0).repeat(16, 1)}, [y])
    assert [t.name for t in program.tensors.values() if t.output] == ["y"]
    assert sum(t.inner for t in program.tensors.values()) == 1


def test_room_is_given_back() -> None:
    """More nodes than SBUF has room for at once."""
    values = [value(f"v{i}", (9, 300)) for i in range(30)]
    nodes = [Node("unary", {"x": a}, b, {"function": "negative"}) for a, b in zip(values, values[1:], strict=False)]
    x = normal(9, 300)
    assert np.array_equal(run(nodes, {"v0": x}, [values[-1]])[0], -x)


def test_what_no_node_makes() -> None:
    graph = Graph("g", (value("x", (2,)),), (value("z", (2,)),), ())
    with pytest.raises(KernelError, match="output z that no node makes"):
        emit(TINY, graph)
    node = Node("unary", {"x": value("q", (2,))}, value("z", (2,)), {"function": "abs"})
    with pytest.raises(KernelError, match="no value q where a node reads it"):
        emit(TINY, Graph("g", (), (value("z", (2,)),), (node,)))


def test_scratch_needs_hazards_by_bytes() -> None:
    k = Kernel(TINY, "k")
    with pytest.raises(KernelError, match=r"needs Kernel\.share"), k.scratch("a"):
        pass
    k.share()
    with k.scratch("a"):
        first = k.sbuf("t", partitions=1, columns=8, dtype="fp32")
    second = k.sbuf("t", partitions=1, columns=8, dtype="fp32")
    assert (first.offset, first.name, second.name) == (second.offset, "a t", "t")


def test_reports_name_no_file_of_ours() -> None:
    """Weights that are loaded ahead belong to the product that needs them, tables to themselves."""
    middle, out = value("m", (10, 20)), value("y", (10, 12))
    nodes = [
        Node("matmul", {"a": value("x", (10, 12)), "b": value("w", (12, 20))}, middle, {}, "m.py:1", "mm"),
        Node("matmul", {"a": middle, "b": value("v", (20, 12))}, value("s", (10, 12)), {}, "m.py:2", "mm"),
        Node("unary", {"x": value("s", (10, 12))}, out, {"function": "gelu"}, "m.py:3", "gelu"),
    ]
    program = program_of(nodes, {"x": X.reshape(10, 12)}, [out], {"w": W.T, "v": W})
    said = {i.source for queue in program.queues.values() for i in queue if i.source}
    assert said | {d.origin for ring in program.rings for d in ring} == {
        "m.py:1 mm", "m.py:2 mm + gelu", "tables of functions"
    }  # fmt: skip
    loads = {(d.source.tensor, d.origin) for ring in program.rings for d in ring if "constant" in d.source.tensor}
    assert [origin for _, origin in sorted(loads)] == ["m.py:1 mm", "m.py:2 mm + gelu"]  # a tensor each, in order
