"""A graph on the RTL: the bits of the golden machine, every one."""

import numpy as np

import plexus
from firmware.graph.ir import Node
from verif.checks.graph_runs import error, normal, program_of, value


def test_a_small_layer_has_the_bits_of_the_golden_machine() -> None:
    x, w, b, gain = normal(10, 16), normal(16, 32, seed=1), normal(32, seed=2), normal(32, seed=3)
    shapes = {"s": (10, 32), "p": (10, 32), "g": (10, 32), "h": (1, 10, 4, 8), "c": (1, 10, 4, 8), "f": (10, 32)}
    v = {n: value(n, s) for n, s in shapes.items()}
    out, top, mean = value("y", (10, 32)), value("t", (10, 32), "uint8"), value("m", (32,))
    heads = {"heads_last": ("q", "k", "v", "out"), "kind": "bf16", "causal": True}
    nodes = [
        Node("matmul", {"a": value("x", x.shape), "b": value("w", w.shape)}, v["s"], {"kind": "bf16"}),
        Node("binary", {"a": v["s"], "b": value("b", b.shape)}, v["p"], {"op": "add"}),
        Node("unary", {"x": v["p"]}, v["g"], {"function": "gelu"}),
        Node("reshape", {"x": v["g"]}, v["h"]),
        Node("attention", {"q": v["h"], "k": v["h"], "v": v["h"]}, v["c"], heads),
        Node("reshape", {"x": v["c"]}, v["f"]),
        Node("layernorm", {"x": v["f"], "residual": v["g"], "gain": value("gain", gain.shape)}, out, {"epsilon": 1e-5}),
        Node("binary", {"a": out}, top, {"op": "greater", "scalar": 0.5}),
        Node("reduce", {"x": out}, mean, {"op": "mean", "axes": (0,)}),
    ]
    program = program_of(nodes, {"x": x}, [out, top, mean], {"w": w, "b": b, "gain": gain})
    result = plexus.run(program, config="tiny", device="rtl")
    assert result.report["match"]
    assert np.array_equal(result["t"], result["y"] > 0.5)
    assert error(result["m"], result["y"].astype(np.float64).mean(0)) < 1e-5
