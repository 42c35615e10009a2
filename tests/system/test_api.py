"""`import plexus` on the RTL: bits of the golden machine, values of NumPy, cycles; arrays through `plexus run`."""

import dataclasses
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import plexus
from firmware.own_makers import OWN_ARRAYS
from rtl.contract.isa import Queue
from sim.cli import main
from sim.toolchain import ROOT

pytestmark = pytest.mark.sim


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def program() -> plexus.Program:
    k = plexus.Kernel(plexus.load_config("tiny"), "doubled")
    x = k.hbm("x", (5, 7), "fp32", normal(5, 7).view(np.uint32))
    tile = k.sbuf("tile", partitions=5, columns=7, dtype="fp32")
    k.dma(tile[:, :], x[:, :])
    k.vector.tensor_tensor(tile[:, :], tile[:, :], "add", tile[:, :])
    k.dma(k.hbm("y", (5, 7), "fp32")[:, :], tile[:, :])
    return k.program()


X, W = normal(9, 12), normal(12, 20, seed=1)
Q, K, V = normal(2, 6, 8), normal(1, 10, 8, seed=1), normal(1, 10, 5, seed=2)
CALLS: dict[str, Callable[..., plexus.Result]] = {
    "gemm": lambda **o: plexus.gemm(X, W, **o),
    "gemm in fp16": lambda **o: plexus.gemm(X.astype(np.float16), W.astype(np.float16), out="fp16", **o),
    "gemm in bf16, turned": lambda **o: plexus.gemm(X[:3], W, dtype="bf16", **o),
    "gemm in mxfp8": lambda **o: plexus.gemm(normal(5, 64), normal(64, 6), dtype="mxfp8", **o),
    "softmax": lambda **o: plexus.softmax(X, **o),
    "attention": lambda **o: plexus.attention(Q, K, V, causal=True, **o),
    "layernorm": lambda **o: plexus.layernorm(X.astype(ml_dtypes.bfloat16), W[:, 0], **o),
    "ffn": lambda **o: plexus.ffn(X, W.T, W, activation="relu", **o),
    "moe": lambda **o: plexus.moe(X, W[:, :3], normal(3, 12, 5), top_k=1, mode="whole", **o),
    "moe by GPSIMD cores": lambda **o: plexus.moe(
        X, W[:, :3], normal(3, 12, 5), top_k=1, mode="whole", router="gpsimd", **o
    ),
    "transpose": lambda **o: plexus.transpose(X, **o),
    "gated_ffn": lambda **o: plexus.gated_ffn(X, W.T, W.T[::-1], W, **o),
    "rope": lambda **o: plexus.rope(normal(6, 2, 8), first=3, **o),
    "elementwise": lambda **o: plexus.elementwise(X, X[::-1], op="swiglu", **o),
    "a program": lambda config, **o: plexus.run(program(), {"x": X[:5, :7]}, **o),
}


@pytest.mark.parametrize("name", CALLS)
def test_bits_are_the_golden_machines(name: str) -> None:
    got, want = CALLS[name](config="tiny"), CALLS[name](config="tiny", device="golden")
    assert got.outputs.keys() == want.outputs.keys()
    for output, array in want.outputs.items():
        assert got[output].dtype == array.dtype
        assert np.array_equal(got[output].view(np.uint8), array.view(np.uint8)), output
    assert got.report["match"] is True and got.cycles and got.cycles == got.report["cycles"]
    assert got.metrics == want.metrics and want.cycles is None


@pytest.mark.parametrize(
    "options",
    [{"array": "structural"}, pytest.param({"fast": True}, marks=pytest.mark.regress)],  # two more builds
    ids=["structural", "fast"],
)
def test_other_models_have_the_same_cycles(options: dict[str, Any]) -> None:
    got, want = CALLS["softmax"](config="tiny", **options), CALLS["softmax"](config="tiny")
    assert np.array_equal(got.output, want.output) and got.cycles == want.cycles
    assert got.report["array"] == options.get("array", "native")


def test_values_are_numpys() -> None:
    exact = X.astype(np.float64) @ W
    result = plexus.gemm(X, W, config="tiny")
    assert np.abs(result["c"] - exact).max() < 1e-5 and result.metrics["max_abs_error"] < 1e-5
    rough = plexus.gemm(X, W, dtype="bf16", config="tiny")
    assert 1e-5 < np.abs(rough["c"] - exact).max() < 0.1
    assert rough.cycles and result.cycles and rough.cycles < result.cycles
    assert np.array_equal(plexus.transpose(X, config="tiny").output, X.T)
    hidden = X.astype(np.float64) @ W
    gated = hidden / (1 + np.exp(-hidden)) * hidden @ W.T.astype(np.float64)
    got = plexus.gated_ffn(X, W.T, W.T, W, config="tiny").output
    assert np.abs(got - gated).max() < 0.02 * np.abs(gated).max()
    total = plexus.elementwise(X, X[::-1], config="tiny").output.astype(np.float64)
    assert np.abs(total - (X + X[::-1])).max() < 0.03
    page = result._repr_html_()
    assert "MATCH" in page and f"{result.cycles:,} cycles" in page


def test_a_session_on_the_rtl() -> None:
    with plexus.Session("tiny") as session:
        hidden = plexus.gemm(session.put(X), W, session=session)
        shares = plexus.softmax(hidden.tensor, session=session)
        assert session.cycles == (hidden.cycles or 0) + (shares.cycles or 0)
        exact = np.exp(X.astype(np.float64) @ W)
        assert np.allclose(shares.output, exact / exact.sum(axis=1, keepdims=True), atol=1e-5)


def test_a_run_that_halts_says_where(tmp_path: Path) -> None:
    broken = program()
    queue = broken.queues[Queue.VECTOR]
    assert queue[0].src0 is not None
    queue[0] = dataclasses.replace(queue[0], src0=dataclasses.replace(queue[0].src0, offset=8192))
    for device in ("rtl", "golden"):
        with pytest.raises(plexus.RunError, match=r"vector, item 0: out_of_range.*test_api\.py:\d+") as caught:
            plexus.run(broken, device=device, folder=tmp_path / device)
        assert caught.value.result.report["end"] == "fault" and not caught.value.result.outputs
    assert json.loads((tmp_path / "rtl" / "report.json").read_text())["faults"]


FILES: dict[str, dict[str, Any]] = {
    "gemm": {"a": X, "b": W},
    "attention": {"q": Q, "k": K, "v": V, "sinks": normal(2)},
    "softmax": {"x": X.astype(np.float16)},
    "layernorm": {"x": X, "gain": W[:, 0], "shift": W[:, 1]},
    "ffn": {"x": X, "up": W.T, "down": W, "down_bias": W[:, 0]},
    "gated-ffn": {"x": X, "gate": W.T, "up": W.T, "down": W},
    "rope": {"x": normal(5, 2, 8)},
    "elementwise": {"a": X, "b": X[::-1]},
    "moe": {"x": X, "gate": W[:, :3], "weights": normal(3, 12, 5)},
    "transpose": {"x": X},
}


def _exact(name: str) -> list[np.ndarray]:
    return [array.astype(np.float64) for array in FILES[name].values()]


def _softmax(x: np.ndarray) -> np.ndarray:
    return np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True)


def _attention() -> np.ndarray:
    q, k, v, sinks = _exact("attention")
    scores = np.einsum("hqd,hkd->hqk", q, k.repeat(len(q), 0)) / np.sqrt(q.shape[2])
    beside = np.concatenate([scores, np.broadcast_to(sinks[:, None, None], (*scores.shape[:2], 1))], axis=2)
    return _softmax(beside)[:, :, :-1] @ v.repeat(len(q), 0)


def _layernorm() -> np.ndarray:
    x, gain, shift = _exact("layernorm")
    return (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5) * gain + shift


def _ffn() -> np.ndarray:
    x, up, down, bias = _exact("ffn")
    inner = x @ up.T
    return inner * (1 + np.vectorize(math.erf)(inner / math.sqrt(2))) / 2 @ down.T + bias


def _gated() -> np.ndarray:
    x, gate, up, down = _exact("gated-ffn")
    return (x @ gate.T / (1 + np.exp(-(x @ gate.T))) * (x @ up.T)) @ down.T


def _rope() -> np.ndarray:
    (x,) = _exact("rope")
    one, two = np.split(x, 2, axis=2)
    turns = (np.arange(len(x))[:, None] / 10000.0 ** (np.arange(0, x.shape[2], 2) / x.shape[2]))[:, None]
    cos, sin = np.cos(turns), np.sin(turns)
    return np.concatenate([one * cos - two * sin, two * cos + one * sin], axis=2)


def _moe() -> np.ndarray:
    x, gate, weights = _exact("moe")
    scores = np.where(x @ gate >= np.sort(x @ gate, axis=1)[:, -2:-1], x @ gate, -np.inf)
    return np.einsum("te,td,edf->tf", _softmax(scores), x, weights)


NUMPY: dict[str, tuple[Callable[[], np.ndarray], float]] = {
    "gemm": (lambda: _exact("gemm")[0] @ _exact("gemm")[1], 1e-5),
    "attention": (_attention, 0.02),
    "softmax": (lambda: _softmax(_exact("softmax")[0]), 1e-3),
    "layernorm": (_layernorm, 1e-4),
    "ffn": (_ffn, 0.3),
    "gated-ffn": (_gated, 1.5),
    "rope": (_rope, 0.04),
    "elementwise": (lambda: sum(_exact("elementwise")), 0.04),  # type: ignore[arg-type, return-value]
    "moe": (_moe, 0.05),
    "transpose": (lambda: _exact("transpose")[0].T, 0),
}
"""Of each workload what NumPy makes of its file in float64, and how far formats may be from that."""


@pytest.mark.parametrize("name", OWN_ARRAYS)
def test_arrays_through_the_command_line(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "x.npz", **FILES[name])
    places = ["--in", str(tmp_path / "x.npz"), "--out-arrays", str(tmp_path / "y.npz"), "--out", str(tmp_path)]
    more = ["-p", "mode=whole"] if name == "moe" else []
    assert main(["run", name, "--config", "tiny", *places, *more]) == 0
    assert "arrays: " in capsys.readouterr().out
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["match"] is True
    with np.load(tmp_path / "y.npz") as file:
        arrays = {key: file[key] for key in file.files}
    (result,) = arrays.values()
    assert list(arrays) == ["c" if name == "gemm" else "y"] and result.dtype.isbuiltin
    wanted, error = NUMPY[name]
    assert result.shape == wanted().shape and np.abs(result - wanted()).max() <= error


def test_import_from_anywhere(tmp_path: Path) -> None:
    """What notebooks do: another folder, no main program of ours."""
    code = "import plexus, numpy as np; print(plexus.softmax(np.ones((2, 4)), config='tiny').output.tolist())"
    there = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=there, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{[[0.25] * 4] * 2}\n"
