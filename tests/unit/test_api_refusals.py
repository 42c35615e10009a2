"""`import plexus`: whatever is wrong with a call, it ends in one sentence, and what NumPy means is understood."""

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import plexus
from firmware.npz import read_npz
from firmware.views import KernelError
from sim.cli import main

GOLDEN: Any = {"config": "tiny", "device": "golden"}
NARROW: Any = GOLDEN | {"settings": {"tensor.mx": True}}
X = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)


def doubled(k: plexus.Kernel, x: Any) -> None:
    rows, columns = x.shape
    tile = k.sbuf("tile", partitions=rows, columns=columns, dtype=x.dtype)
    k.dma(tile[:, :], x[:, :])
    k.vector.tensor_tensor(tile[:, :], tile[:, :], "add", tile[:, :])
    k.dma(k.hbm("y", (rows, columns), x.dtype)[:, :], tile[:, :])


def softmax(**options: Any) -> Any:
    return plexus.softmax(X, **(GOLDEN | options))


def in_session(call: Callable[[plexus.Session], Any]) -> Any:
    with plexus.Session("tiny", device="golden") as session:
        return call(session)


CALLS: list[tuple[Callable[[], Any], str]] = [
    (lambda: plexus.run(doubled, [X], **GOLDEN), 'arrays are a mapping of names, as {"x": x}, not list'),  # type: ignore[arg-type]
    (lambda: plexus.run(doubled, X, **GOLDEN), "not ndarray"),  # type: ignore[arg-type]
    (lambda: plexus.run(doubled, {1: X}, **GOLDEN), "1 is no name"),  # type: ignore[dict-item]
    (lambda: plexus.run(doubled, {"x": None}, **GOLDEN), "array x is None"),
    (
        lambda: plexus.run(functools.partial(doubled, factor=2), {"x": X}, **GOLDEN),
        "functools.partial gives it factor=2",
    ),
    (lambda: softmax(session="a"), "session is one that plexus.Session(\"tiny\") gives, not 'a'"),
    (lambda: softmax(session=plexus.Session), "not <class"),
    (lambda: softmax(settings=None), "settings are a mapping or a list"),
    (lambda: softmax(settings=5), "not 5"),
    (lambda: softmax(settings=[("a", 1)]), "('a', 1) is no text"),
    (lambda: softmax(settings=[5]), "5 is no text"),
    (lambda: softmax(folder=3), "folder is a path, a text or a pathlib.Path, not 3"),
    (lambda: softmax(folder="a\0b"), "folder is a path"),
    (lambda: softmax(config="a\0b.toml"), "config is a name or a .toml file, and 'a\\x00b.toml' can be none"),
    (lambda: softmax(config=b"tiny"), "config is a name"),
    (lambda: softmax(check="sample=" + "9" * 5000), "sample=N with N from 1 to 1048576, not 'sample=9"),
    (lambda: softmax(seed=1 << 32), "from 0 to 2**32 - 1, not 4294967296"),
    (lambda: softmax(seed=True), "not True"),
    (lambda: softmax(seed=np.int64(-1)), "seed must be a whole number from 0"),
    (lambda: softmax(seed=1.0), "not 1.0"),
    (lambda: softmax(dtype=np.int8), "dtype must be one of bf16, fp32, fp16, not 'int8'"),
    (lambda: softmax(dtype=np.float64), "not 'float64'"),
    (lambda: softmax(dtype=5), "dtype must be a text, not 5"),
    (lambda: in_session(lambda s: s.keep(np.ones(3))), "keep takes a plexus.Tensor, not ndarray"),  # type: ignore[arg-type]
    (lambda: in_session(lambda s: s.run(doubled, {"x": X}, session=s)), "session is this one"),
    (lambda: in_session(lambda s: s.run(doubled, {"x": X}, config="tiny")), "config is that of the session"),
    (lambda: plexus.Tensor("x", np.ones(3)), "tensor x is made of bits and their format, not of ndarray"),  # type: ignore[arg-type]
    (lambda: plexus.softmax(np.ma.masked_array(X, X > 0), **GOLDEN), "array x has a mask"),
    (lambda: plexus.softmax(None, **GOLDEN), "takes the arrays x [rows, columns]; there is no x"),  # type: ignore[arg-type]
    (
        lambda: plexus.softmax(X.astype(ml_dtypes.bfloat16).view("V2"), **GOLDEN),
        "keeps no BF16 and no FP8; write it as",
    ),
    (lambda: plexus.softmax(X.astype(np.longdouble), **GOLDEN), "which this machine has not"),
    (lambda: plexus.softmax(X.astype(ml_dtypes.int4), **GOLDEN), "of dtype int4, which this machine has not"),
    (lambda: plexus.gemm(X, X.T, dtype="mxfp8", config="tiny", settings={"tensor.mx": False}), "the setting tensor.mx"),
    (lambda: plexus.moe(X, X.T, np.zeros((3, 4, 2)), **GOLDEN), "mode=whole needs none"),
]


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_wrong_calls_end_in_one_sentence(number: int) -> None:
    call, says = CALLS[number]
    with pytest.raises(plexus.Error) as caught:
        call()
    text = str(caught.value)
    assert says in text and "\n" not in text and "--set" not in text and len(text) < 400, text


def test_numbers_of_numpy_are_numbers() -> None:
    result = plexus.gemm(X, X.T, rounding="stochastic", seed=np.uint32(3), **GOLDEN)  # type: ignore[arg-type]
    assert np.array_equal(result["c"], plexus.gemm(X, X.T, rounding="stochastic", seed=3, **GOLDEN)["c"])
    weights = np.ones((3, 4, 2), np.float32)
    got = plexus.moe(X, X.T, weights, top_k=np.int64(1), mode="whole", **GOLDEN)  # type: ignore[arg-type]
    assert type(got.report["params"]["top_k"]) is int
    q = X[None]
    masked = plexus.attention(q, q, q, causal=np.bool_(True), window=np.int8(2), **GOLDEN)  # type: ignore[arg-type]
    assert json.loads(json.dumps(masked.report["params"]))["window"] == 2


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        (np.float32, "fp32"),
        ("float32", "fp32"),
        (np.dtype("f2"), "fp16"),
        ("bfloat16", "bf16"),
        (ml_dtypes.bfloat16, "bf16"),
        (ml_dtypes.float8_e4m3fn, "fp8"),
    ],
)
def test_dtypes_of_numpy_name_formats(dtype: Any, name: str) -> None:
    assert plexus.gemm(X, X.T, dtype=dtype, **NARROW).report["params"]["dtype"] == name


def test_out_is_a_dtype_too() -> None:
    assert plexus.gemm(X, X.T, out=ml_dtypes.bfloat16, **GOLDEN)["c"].dtype == ml_dtypes.bfloat16  # type: ignore[arg-type]


def test_options_of_a_call_in_a_session(tmp_path: Path) -> None:
    with plexus.Session("tiny", device="golden") as session:
        assert session.run(doubled, {"x": X}, seed=1, folder=tmp_path).report["seed"] == 1
    assert (tmp_path / "report.json").exists()


def test_a_sample_may_have_zeros_in_front() -> None:
    assert plexus.Session("tiny", check="sample=007").check == "sample=7"
    with pytest.raises(plexus.Error, match="sample=N with N from 1"):
        plexus.Session("tiny", check="sample=000")


def damaged(path: Path) -> None:
    np.savez_compressed(path, x=np.zeros((64, 64), np.float32))
    data = bytearray(path.read_bytes())
    data[80:100] = b"\xff" * 20
    path.write_bytes(data)


def locked(path: Path) -> None:
    np.savez(path, x=X)
    data = bytearray(path.read_bytes())
    for signature, flags in ((b"PK\1\2", 8), (b"PK\3\4", 6)):
        data[data.index(signature) + flags] |= 1
    path.write_bytes(data)


def unknown(path: Path) -> None:
    np.savez(path, x=X)
    data = bytearray(path.read_bytes())
    for signature, method in ((b"PK\1\2", 10), (b"PK\3\4", 8)):
        data[data.index(signature) + method] = 99
    path.write_bytes(data)


@pytest.mark.parametrize("make", [damaged, locked, unknown])
def test_an_archive_that_cannot_be_read(make: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    make(path)
    with pytest.raises(KernelError, match=r"x\.npz is not an \.npz archive of plain arrays"):
        read_npz(path)


@pytest.mark.parametrize(
    ("arrays", "words", "says"),
    [
        ({"arr_0": X}, ["softmax"], "there is no x among arr_0"),
        ({name: X[None] for name in "qkv"}, ["attention", "-p", "text=hello"], "text does not go with arrays of yours"),
        ({"x": X.view("V4")}, ["softmax"], "keeps no BF16 and no FP8"),
    ],
)
def test_the_command_line_says_what_to_do(
    arrays: dict[str, np.ndarray], words: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "x.npz", **arrays)  # type: ignore[arg-type]
    assert main(["run", *words, "--config", "tiny", "--in", str(tmp_path / "x.npz")]) == 2
    assert says in " ".join(capsys.readouterr().err.split())


def test_a_damaged_archive_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damaged(tmp_path / "x.npz")
    assert main(["run", "softmax", "--config", "tiny", "--in", str(tmp_path / "x.npz")]) == 2
    assert "archive of plain arrays" in " ".join(capsys.readouterr().err.split())
