"""`import plexus` on the golden machine: values, formats, handles, and what wrong input gets. No simulator starts."""

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plexus
from firmware.host_array import HostArray
from firmware.numbers import bits_dtype
from firmware.own_makers import OWN_ARRAYS
from firmware.views import KernelError
from firmware.workloads import find_workload
from rtl.contract.formats import FORMATS
from rtl.contract.isa import Queue
from sim.run.host_arrays import KINDS, host_array, numpy_array, plain_array

GOLDEN: Any = {"config": "tiny", "device": "golden"}
BF16 = ml_dtypes.bfloat16


def normal(*shape: int, dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def exactly(*arrays: np.ndarray) -> list[np.ndarray]:
    return [array.astype(np.float64) for array in arrays]


def doubled(k: plexus.Kernel, x: Any) -> None:
    """A kernel: y = x + x on the vector engine."""
    rows, columns = x.shape
    tile = k.sbuf("tile", partitions=rows, columns=columns, dtype=x.dtype)
    k.dma(tile[:, :], x[:, :])
    k.vector.tensor_tensor(tile[:, :], tile[:, :], "add", tile[:, :])
    k.dma(k.hbm("y", (rows, columns), x.dtype)[:, :], tile[:, :])


@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float64"])
def test_a_kernel_gets_arrays_in_the_format_of_their_dtype(kind: str) -> None:
    x = (np.arange(12).reshape(3, 4) - 6).astype(kind)
    result = plexus.run(doubled, {"x": x}, **GOLDEN)
    assert result.output.dtype == (np.float32 if kind == "float64" else x.dtype)
    assert np.array_equal(result["y"].astype(np.float64), 2 * x.astype(np.float64))
    assert result.cycles is None and result.nanoseconds is None and result.device == "golden"
    assert "doubled on tiny, golden: y" in repr(result)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 20), st.integers(1, 20), st.integers(1, 20), st.sampled_from(["float32", "float16", "bfloat16"]))
def test_gemm_of_any_shape(m: int, k: int, n: int, kind: str) -> None:
    a, b = normal(m, k, dtype=kind, seed=m), normal(k, n, dtype=kind, seed=n)
    result = plexus.gemm(a, b, **GOLDEN)
    x, y = exactly(a, b)
    assert result["c"].shape == (m, n) and result["c"].dtype == np.float32
    assert np.abs(result["c"] - x @ y).max() <= 2.0**-20 * (np.abs(x) @ np.abs(y)).max()


def test_formats_are_those_of_the_arrays_unless_asked() -> None:
    x = normal(4, 8)
    report = [plexus.gemm(x.astype(kind), x.T.astype(kind), **GOLDEN).report for kind in (np.float64, "f2", BF16)]
    assert [r["params"]["dtype"] for r in report] == ["fp32", "fp16", "bf16"]
    assert plexus.gemm(x.astype("f2"), x.T, **GOLDEN).report["params"]["dtype"] == "fp32"
    assert plexus.gemm(x, x.T, dtype="bf16", out="bf16", **GOLDEN).output.dtype == BF16
    eight = x.astype(ml_dtypes.float8_e4m3fn)
    assert plexus.gemm(eight, eight.T, **GOLDEN, settings={"tensor.mx": True}).report["params"]["dtype"] == "fp8"


def test_every_operator_is_what_numpy_says() -> None:
    x, gain, shift = normal(9, 12), normal(12, seed=1), normal(12, seed=2)
    wide = exactly(x)[0]
    centred = wide - wide.mean(axis=1, keepdims=True)
    norm = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)
    assert np.allclose(plexus.layernorm(x, **GOLDEN)["y"], norm, atol=1e-5)
    assert np.allclose(plexus.layernorm(x, gain, shift, **GOLDEN)["y"], norm * gain + shift, atol=1e-5)
    root = wide / np.sqrt((wide**2).mean(axis=1, keepdims=True) + 1e-5)
    assert np.allclose(plexus.layernorm(x, gain, rms=True, **GOLDEN)["y"], root * gain, atol=1e-5)
    shares = np.exp(wide) / np.exp(wide).sum(axis=1, keepdims=True)
    assert np.allclose(plexus.softmax(x, **GOLDEN)["y"], shares, atol=1e-6)
    assert np.allclose(plexus.softmax(x, online=5, **GOLDEN)["y"], shares, atol=1e-6)
    up, down, bias = normal(20, 12, seed=3) / 4, normal(12, 20, seed=4) / 4, normal(20, seed=5)
    for kind in (None, bias):
        want = np.maximum(x @ up.T + (0 if kind is None else kind), 0) @ down.T
        got = plexus.ffn(x, up, down, up_bias=kind, activation="relu", **GOLDEN)
        assert got.metrics["max_abs_error"] < 0.02 and np.allclose(got["y"], want, atol=0.1)


def test_attention_and_experts() -> None:
    q, k, v = normal(4, 6, 8), normal(2, 10, 8, seed=1), normal(2, 10, 5, seed=2)
    result = plexus.attention(q, k, v, causal=True, sinks=normal(4), **GOLDEN)
    assert result["y"].shape == (4, 6, 5) and result.metrics["cosine"] > 0.9999
    scores = np.einsum("hqd,hkd->hqk", q, k.repeat(2, 0)) / np.sqrt(8)
    shares = np.exp(scores) / np.exp(scores).sum(axis=2, keepdims=True)
    assert np.allclose(plexus.attention(q, k, v, **GOLDEN)["y"], shares @ v.repeat(2, 0), atol=0.03)
    single = plexus.attention(q[:, :1], k, v, **GOLDEN)["y"]
    assert np.allclose(single, (shares @ v.repeat(2, 0))[:, :1], atol=0.03)
    x, gate, weights = normal(7, 8), normal(8, 3, seed=3), normal(3, 8, 4, seed=4)
    got = plexus.moe(x, gate, weights, top_k=1, mode="whole", **GOLDEN)
    want = np.einsum("td,tdf->tf", x, weights[(x @ gate).argmax(axis=1)])
    assert got["y"].shape == (7, 4) and np.allclose(got["y"], want, atol=1e-4)
    assert got.metrics["routes_agree"] == 1


@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16"])
def test_transpose_keeps_every_bit(kind: str) -> None:
    width = np.dtype(kind).itemsize
    bits = np.random.default_rng(0).integers(0, 1 << 8 * width, (13, 9), f"u{width}")  # NaN with payloads too
    result = plexus.transpose(bits.view(kind), **GOLDEN)
    assert np.array_equal(result["y"].view(bits.dtype), bits.T)


@given(st.sampled_from(sorted(KINDS)), st.integers(0, 2**32 - 1))
def test_arrays_keep_their_bits(name: str, seed: int) -> None:
    width = bits_dtype(name)
    bits = np.random.default_rng(seed).integers(0, 1 << 8 * width.itemsize, (3, 5), width)
    kind = KINDS[name]
    found = host_array("x", bits.view(kind).T)  # not contiguous
    assert found.dtype == name and np.array_equal(found.bits, bits.T)
    assert numpy_array(found).dtype == kind and np.array_equal(numpy_array(found).view(width), bits.T)
    plain = plain_array(found)
    assert plain.dtype.isbuiltin == 1
    with np.errstate(invalid="ignore"):
        assert np.array_equal(plain.astype(kind), bits.view(kind).T, equal_nan=not FORMATS[name].integer)


def test_other_orders_of_bytes_and_formats_without_a_dtype() -> None:
    assert np.array_equal(numpy_array(host_array("x", np.array([1.5, -2], ">f4"))), np.float32([1.5, -2]))
    assert numpy_array(HostArray(np.zeros(3, np.uint32), "tf32")).dtype == np.float32
    assert numpy_array(HostArray(np.ones(3, np.uint32), "e4m3fn_x4")).dtype == np.uint32
    assert host_array("x", [[1.0, 2.0]]).dtype == "fp32"
    assert np.isinf(host_array("x", np.array([1e300])).values).all()


def program() -> plexus.Program:
    k = plexus.Kernel(plexus.load_config("tiny"), "halves")
    doubled(k, k.hbm("x", (2, 3), "bf16", np.zeros((2, 3), np.uint16)))
    return k.program()


def test_a_finished_program_takes_other_values() -> None:
    made = program()
    x = np.float32([[1, 2, 3], [1.00390625, 5, 6]])  # the fourth rounds to 1
    result = plexus.run(made, {"x": x}, device="golden")
    assert np.array_equal(result["y"].astype(np.float32), [[2, 4, 6], [2, 10, 12]])
    assert not plexus.run(made, device="golden")["y"].any(), "the program that was given has changed"
    with pytest.raises(plexus.Error, match=r"was built for tiny .* is on small"):
        plexus.run(made, config="small", device="golden")


def test_metrics_are_never_about_other_values() -> None:
    made = find_workload("gemm").build(plexus.load_config("tiny"), {"m": 4, "k": 5, "n": 6})
    assert plexus.run(made, device="golden").metrics["cosine"] > 0.999
    other = plexus.run(made, {"b": np.zeros((5, 6))}, device="golden")
    assert not other.metrics and not other.output.any()


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 8), st.integers(1, 70), st.sampled_from(["f4", "f2", "bfloat16", "int32", "int8", "uint16"]))
def test_kernels_on_any_shape_and_format(rows: int, columns: int, kind: str) -> None:
    x = np.random.default_rng(columns).integers(0, 50, (rows, columns)).astype(kind)
    result = plexus.run(doubled, {"x": x}, **GOLDEN)
    assert result.output.dtype == x.dtype and np.array_equal(result["y"], x + x)


def test_a_session_keeps_tensors() -> None:
    with plexus.Session("tiny", device="golden") as session:
        x = session.put(normal(6, 8), "x")
        assert (x.shape, x.format, x.size_bytes, x.dtype) == ((6, 8), "fp32", 192, np.float32)
        scores = plexus.gemm(x, normal(8, 8), session=session)
        shares = plexus.softmax(scores.tensor, session=session)
        assert session.hbm_used_bytes == 192 + 2 * 6 * 8 * 4 and session.cycles == 0
        assert repr(session) == "Session(tiny, golden: 3 tensors, 576 bytes of HBM; 0 cycles)"
        both = session.run(doubled, {"x": shares.tensor})
        assert np.array_equal(both["y"], 2 * shares["y"])
        assert np.array_equal(np.asarray(both.tensor), both.output)
        del scores
        assert session.hbm_used_bytes == 3 * 192
        with pytest.raises(plexus.Error, match="config is that of the session"):
            plexus.gemm(x, x, session=session, config="tiny")
        with pytest.raises(plexus.Error, match=r"of 20971520 bytes does not fit .* hbm.capacity_mib = 16"):
            session.put(np.zeros(5 << 20, np.float32))
    with pytest.raises(plexus.Error, match="session is closed"):
        session.run(doubled, {"x": x})
    assert x.numpy().shape == (6, 8)


def test_a_report_without_cycles(tmp_path: Path) -> None:
    result = plexus.gemm(normal(2, 3), normal(3, 4), **GOLDEN, folder=tmp_path / "run")
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    assert report == json.loads(json.dumps(result.report)) and report["metrics"]["cosine"] > 0.999
    assert any("own arrays: a fp32 [2, 3], b fp32 [3, 4]" in note for note in report["notes"])
    page = result._repr_html_()
    assert page.startswith("<pre") and "golden machine" in page and "cosine" in page


def test_configurations() -> None:
    assert {"tiny", "small", "full"} <= set(plexus.list_configs())
    assert "8 x 8 array" in plexus.list_configs()["tiny"]
    slow = plexus.load_config("tiny", {"hbm.latency_ns": 200, "tensor.nvfp4": True})
    assert (slow.hbm.latency_ns, slow.tensor.nvfp4) == (200, True)
    assert plexus.load_config(slow, ["hbm.latency_ns=25", "tensor.nvfp4=false"]) == plexus.load_config("tiny")
    assert isinstance(slow, plexus.Config)


def test_axes_of_arrays_are_parameters() -> None:
    for name, own in OWN_ARRAYS.items():
        workload = find_workload(name)
        assert {axis for axes in own.axes.values() for axis in axes} <= set(workload.params), name
        assert own.optional <= set(own.axes) and set(own.format_of) <= set(own.axes)
        assert not own.format_of or "dtype" in workload.params


def nothing(k: plexus.Kernel, x: Any) -> None: ...


def answers(k: plexus.Kernel, x: Any) -> int:
    return 3


def elsewhere(k: plexus.Kernel, x: Any) -> plexus.Program:
    return program()


def deadlocked(k: plexus.Kernel, x: Any) -> None:
    doubled(k, x)
    semaphore = k.semaphore("never")
    k.wait(Queue.VECTOR, semaphore, 1)


X = normal(3, 4)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: plexus.gemm(X, X, **GOLDEN), ["b (3, 4) has k=3, and a (3, 4) has k=4"]),
        (lambda: plexus.gemm(X[0], X, **GOLDEN), ["a as [m, k]", "(4,)"]),
        (lambda: plexus.gemm(X[:0], X.T, **GOLDEN), ["m must be at least 1, not 0"]),
        (lambda: plexus.gemm(X.astype(complex), X.T, **GOLDEN), ["array a", "complex128", "bfloat16"]),
        (lambda: plexus.gemm(X.astype(int), X.T, **GOLDEN), ["array a", "int64", "cast it"]),
        (lambda: plexus.gemm(X.astype("i4"), X.T, **GOLDEN), ["floating point", "a is int32"]),
        (lambda: plexus.gemm([[1.0], [1.0, 2.0]], X.T, **GOLDEN), ["array a is none that NumPy takes"]),
        (lambda: plexus.gemm(X, X.T, dtype="int8", **GOLDEN), ["dtype must be one of bf16", "'int8'"]),
        (lambda: plexus.gemm(X, X.T, sparsity="2:4", **GOLDEN), ["sparsity=2:4 takes dtype bf16 or fp16, not fp32"]),
        (lambda: plexus.gemm(X, X.T, config="smal"), ["'smal'", "tiny, small, full"]),
        (lambda: plexus.gemm(X, X.T, config=3), ["config is a name", "int"]),  # type: ignore[arg-type]
        (lambda: plexus.gemm(X, X.T, settings="a=b"), ["settings are a mapping or a list"]),
        (lambda: plexus.gemm(X, X.T, settings={"hbm.latency": 3}), ["hbm.latency", "latency_ns"]),
        (lambda: plexus.gemm(X, X.T, device="gpu"), ["device must be rtl or golden, not 'gpu'"]),
        (lambda: plexus.gemm(X, X.T, check="some"), ["golden, none or sample=N", "'some'"]),
        (lambda: plexus.gemm(X, X.T, seed=-1), ["seed must be a whole number from 0 to 2**32 - 1, not -1"]),
        (lambda: plexus.gemm(X, X.T, confg="tiny"), ["no option 'confg'", "config, settings, device"]),
        (lambda: plexus.attention(X, X, X, **GOLDEN), ["q as [heads, queries, head]", "(3, 4)"]),
        (lambda: plexus.layernorm(X, shift=X[0], rms=True, **GOLDEN), ["rms=true has no shift"]),
        (lambda: plexus.transpose(X.astype(ml_dtypes.float8_e5m2), **GOLDEN), ["bf16, fp16 or fp32", "x is e5m2"]),
        (lambda: plexus.moe(X, X.T, np.zeros((3, 4, 2)), top_k=9, **GOLDEN), ["top_k must be at most 8, not 9"]),
        (lambda: plexus.run(lambda k: k.gpsimd.load("absent.elf"), **GOLDEN), ["absent.elf cannot be read"]),
        (lambda: plexus.run(doubled, {"y": X}, **GOLDEN), ["kernel doubled takes (k", "the arrays y"]),
        (lambda: plexus.run(functools.partial(doubled), {}, **GOLDEN), ["kernel doubled takes", "(none)"]),
        (lambda: plexus.run(nothing, {"x": X}, **GOLDEN), ["kernel nothing makes no output"]),
        (lambda: plexus.run(answers, {"x": X}, **GOLDEN), ["kernel answers returns a int"]),
        (lambda: plexus.run(elsewhere, {"x": X}, device="golden"), ["a program for tiny", "is on small"]),
        (lambda: plexus.run(doubled, {"x": normal(9, 1)}, **GOLDEN), ["tile tile takes partitions 0 to 8"]),
        (lambda: plexus.run("doubled", {"x": X}, **GOLDEN), ["a function or a Program, not str"]),  # type: ignore[arg-type]
        (lambda: plexus.run(program(), {"z": X}, device="golden"), ["no input 'z'; it has x"]),
        (lambda: plexus.run(program(), {"x": X}, device="golden"), ["shape (2, 3)", "(3, 4)"]),
        (lambda: plexus.run(program(), {"x": np.int8([[1] * 3] * 2)}, device="golden"), ["tensor x is bf16", "int8"]),
        (lambda: plexus.gemm(X, X.T, **GOLDEN)["d"], ["no output 'd'; there are c"]),
        (lambda: plexus.Session("tiny", device="gpu"), ["device must be rtl or golden"]),  # type: ignore[arg-type]
    ],
)
def test_wrong_input_gets_one_sentence(call: Callable[[], Any], says: list[str]) -> None:
    with pytest.raises(plexus.Error) as caught:
        call()
    text = str(caught.value)
    assert all(words in text for words in says), text
    assert "\n" not in text and not isinstance(caught.value, plexus.RunError)


def test_errors_of_the_language_are_errors_too() -> None:
    """Also where nothing of ours is in between: a kernel that is built by hand, and a tensor that has no place."""
    with pytest.raises(plexus.Error) as caught:
        plexus.Kernel(plexus.load_config("tiny"), "wide").sbuf("x", partitions=9, columns=1, dtype="fp32")
    assert isinstance(caught.value, KernelError)
    k = plexus.Kernel(plexus.load_config("tiny"), "large")
    with pytest.raises(plexus.Error, match="needs 20971520 bytes of HBM"):
        k.hbm("y", (5 << 20,), "fp32")


def test_a_run_that_does_not_end_has_its_result() -> None:
    with pytest.raises(plexus.RunError, match=r"deadlocked on tiny did not end: .*vector waits") as caught:
        plexus.run(deadlocked, {"x": X}, **GOLDEN)
    assert caught.value.result.report["end"] == "stuck" and not caught.value.result.outputs
