"""NKI kernels on the golden machine: values, both styles of calls, memory, and what wrong kernels get."""

import importlib.util
import sys
import textwrap
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import plexus
from firmware.nki import coverage
from sim.cli import main
from sim.toolchain import ROOT

GOLDEN: Any = {"config": "tiny", "device": "golden"}
EXAMPLES = ROOT / "firmware" / "nki" / "examples"
STYLES = {
    "new": "import nki\nimport nki.isa as nisa\nimport nki.language as nl\n",
    "old": "import neuronxcc.nki as nki\nimport neuronxcc.nki.isa as nisa\nimport neuronxcc.nki.language as nl\n",
}


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


@pytest.fixture
def kernel(tmp_path: Path) -> Any:
    """Runs the body of a kernel f(x, ...) on arrays."""

    def run(body: str, *arrays: Any, style: str = "new", **options: Any) -> plexus.Result:
        path = tmp_path / "kernels.py"
        text = textwrap.indent(textwrap.dedent(body).strip(), "    ")
        names = ", ".join("xyzuvw"[: len(arrays)])
        path.write_text(f"{STYLES[style]}import numpy as np\n\n\n@nki.jit\ndef f({names}):\n{text}\n")
        return plexus.nki.run(f"{path}:f", *arrays, **GOLDEN | options)

    return run


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


X, Y, W = normal(20, 100), normal(20, 100, seed=1), normal(100, seed=2)
NORMAL = X / np.sqrt((X.astype(np.float64) ** 2).mean(1, keepdims=True) + 1e-5)
WEIGHT = normal(100, 70, seed=3)


@pytest.mark.parametrize(
    ("name", "arrays", "wanted"),
    [
        ("matmul.py:matmul_tiled", (X, Y), X.astype(np.float64).T @ Y),
        ("rows.py:add", (X, Y), X + Y),
        ("rows.py:transpose", (X,), X.T),
        ("rows.py:softmax", (X,), softmax(X)),
        ("rows.py:rmsnorm", (X, W), NORMAL * W),
        ("fused.py:rmsnorm_matmul", (X, WEIGHT), NORMAL @ WEIGHT),
    ],
)
def test_examples(name: str, arrays: tuple[np.ndarray, ...], wanted: np.ndarray) -> None:
    result = plexus.nki.run(str(EXAMPLES / name), *arrays, **GOLDEN)
    assert np.allclose(result.output, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("causal", [False, True])
def test_flash_attention(causal: bool) -> None:
    q, k, v = (normal(20, 8, seed=n) for n in range(3))
    scores = q.astype(np.float64) @ k.T / np.sqrt(8)
    if causal:
        scores[np.triu_indices(20, 1)] = -np.inf
    result = plexus.nki.run(f"{EXAMPLES}/attention.py:flash_attention", q, k, v, causal, **GOLDEN)
    assert np.allclose(result.output, softmax(scores) @ v, atol=1e-5)


@pytest.mark.parametrize("style", STYLES)
def test_a_matmul_in_both_styles(kernel: Any, style: str) -> None:
    old = """
        out = nl.ndarray((8, 16), dtype=x.dtype, buffer=nl.shared_hbm)
        sums = nl.zeros((8, 16), dtype=nl.float32, buffer=nl.psum)
        for k in nl.affine_range(2):
            sums += nisa.nc_matmul(nl.load(x[8 * k:8 * k + 8, :]), nl.load(y[nl.ds(8 * k, 8), :]))
        nl.store(out, value=nisa.tensor_copy(sums, dtype=x.dtype))
        return out
        """
    new = """
        out = nl.ndarray((8, 16), dtype=x.dtype, buffer=nl.shared_hbm)
        sums = nl.ndarray((8, 16), dtype=nl.float32, buffer=nl.psum)
        for k in nl.affine_range(2):
            a, b = nl.ndarray((8, 8), x.dtype, buffer=nl.sbuf), nl.ndarray((8, 16), x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=a, src=x[8 * k:8 * k + 8, :])
            nisa.dma_copy(dst=b, src=y[8 * k:8 * k + 8, :])
            nisa.nc_matmul(sums, a, b)
        done = nl.ndarray((8, 16), x.dtype, buffer=nl.sbuf)
        nisa.tensor_copy(done, sums)
        nisa.dma_copy(out, done)
        return out
        """
    a, b = (normal(16, n).astype(ml_dtypes.bfloat16) for n in (8, 16))
    result = kernel(old if style == "old" else new, a, b, style=style)
    exact = a.astype(np.float64).T @ b.astype(np.float64)
    assert result.output.dtype == a.dtype and np.allclose(result.output.astype(np.float64), exact, rtol=1e-2, atol=1e-2)
    assert result.report["notes"] == [], "a product is added in PSUM, and made where it is assigned"


def test_a_product_adds_only_to_what_was_written_there(kernel: Any) -> None:
    body = """
        out = nl.ndarray((8, 32), dtype=nl.float32, buffer=nl.shared_hbm)
        a, b = nl.load(x), nl.load(y)
        for again in range(2):
            sums = nl.ndarray((8, 32), dtype=nl.float32, buffer=nl.psum)
            for part in range(2):
                for k in range(2):
                    nisa.nc_matmul(sums[:, 16 * part:16 * part + 16], a, b)
            nl.store(out, sums)
            del sums
        return out
        """
    a, b = normal(8, 8), normal(8, 16, seed=1)
    wanted = 2 * np.tile(a.astype(np.float64).T @ b, (1, 2))
    assert np.allclose(kernel(body, a, b).output, wanted, rtol=1e-4, atol=1e-4)


def test_index_arrays_masks_and_axes(kernel: Any) -> None:
    body = """
        out = nl.ndarray((4, 6, 5), dtype=x.dtype, buffer=nl.shared_hbm)
        i = nl.mgrid[0:8, 0:30]
        tile = nl.load(x[i.p, i.x], mask=(i.p < 4))
        p, a, b = nl.arange(4)[:, None, None], nl.arange(5)[None, :, None], nl.arange(6)[None, None, :]
        turned = nl.ndarray((4, 30), dtype=x.dtype)
        turned[p, b * 5 + a] = nl.copy(tile[p, a * 6 + b])
        nl.store(out, value=turned.reshape((4, 6, 5)))
        return out
        """
    x = normal(4, 30)
    assert np.array_equal(kernel(body, x).output, x.reshape(4, 5, 6).transpose(0, 2, 1))


def test_calls_of_the_vector_engine(kernel: Any) -> None:
    body = """
        out = nl.ndarray((8, 4), dtype=nl.float32, buffer=nl.shared_hbm)
        a, b = nl.load(x), nl.load(y)
        scan = nisa.tensor_tensor_scan(a, b, initial=0, op0=np.multiply, op1=np.add)
        chosen = nisa.affine_select(pred=nl.arange(8)[:, None] >= nl.arange(16)[None, :], on_true_tile=scan,
                                    on_false_value=0.0)
        index = nisa.iota(nl.arange(16)[None, :] + 0 * nl.arange(8)[:, None], dtype=nl.float32)
        block = nl.ndarray((2, nl.par_dim(8), 4), dtype=nl.float32, buffer=nl.sbuf)
        block[0, :, :] = 2.0
        block[1] = nl.divide(nl.where(a > b, a, index), 4.0)[:, 0:4]
        columns = nl.ndarray((8, 4), dtype=nl.float32)
        columns[:, 0] = nisa.tensor_reduce(nl.add, chosen, axis=1)
        columns[:, 1:2] = nl.sum(block[1], axis=1)
        columns[:, 2:3] = nisa.tensor_scalar(nl.max(a, axis=1), op0=nl.multiply, operand0=2.0, op1=nl.add, operand1=1.0)
        columns[:, 3:4] = 1.0 - nl.power(nl.min(block[0], axis=1), 2)
        nl.store(out, columns)
        return out
        """
    a, b = normal(8, 16), normal(8, 16, seed=1)
    scan = np.zeros((8, 16))
    for i in range(16):
        scan[:, i] = (scan[:, i - 1] if i else 0) * a[:, i] + b[:, i]
    where = np.where(a > b, a, np.arange(16))[:, :4] / 4
    wanted = [np.tril(np.ones((8, 16))) * scan, where, None]
    result = kernel(body, a, b, style="old")
    assert np.allclose(result.output[:, 0], wanted[0].sum(1), atol=1e-5)
    assert np.allclose(result.output[:, 1], where.sum(1), atol=1e-6)
    assert np.array_equal(result.output[:, 2], 2 * a.max(1) + 1) and np.array_equal(result.output[:, 3], [-3.0] * 8)
    assert any("affine_select" in note for note in result.report["notes"])


def test_a_copy_whose_ends_overlap(kernel: Any) -> None:
    body = """
        out = nl.ndarray((8, 8), dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.load(x)
        tile[:, 0:7] = tile[:, 1:8]
        nl.store(out, tile)
        return out
        """
    x = normal(8, 8)
    assert np.array_equal(kernel(body, x).output, np.concatenate([x[:, 1:], x[:, 7:]], axis=1))


def test_arguments_by_place_in_both_styles(kernel: Any) -> None:
    body = """
        out = nl.ndarray((8, 40), dtype=nl.float32, buffer=nl.shared_hbm)
        a, b, row = nl.load(x), nl.load(y), nl.ndarray((8, 1), dtype=nl.float32)
        places = nl.arange(8)[:, None] >= nl.arange(8)[None, :]
        new = nl.ndarray((8, 8), dtype=nl.float32)
        nisa.affine_select(new, [[-1, 8]], 0, 1, a, 0.0)
        nl.store(out[:, 0:8], nisa.tensor_tensor(new, nisa.affine_select(places, a, 0.0), nl.equal, name="same"))
        nl.store(out[:, 8:16], nisa.scalar_tensor_tensor(a, nl.multiply, 2.0, nl.add, b))
        nisa.scalar_tensor_tensor(new, a, nl.multiply, 2.0, nl.add, b)
        nl.store(out[:, 16:24], new)
        nl.store(out[:, 24:32], nisa.activation_reduce(np.square, a, reduce_op=np.add, reduce_res=row))
        nisa.select_reduce(new, nl.greater(a, b), a, b)
        nl.store(out[:, 32:40], new * row)
        return out
        """
    a, b = normal(8, 8), normal(8, 8, seed=1)
    found = kernel(body, a, b).output
    both = 2 * a + b
    assert np.array_equal(found[:, :24], np.concatenate([np.ones((8, 8)), both, both], axis=1, dtype=np.float32))
    assert np.allclose(found[:, 24:], np.concatenate([a * a, np.maximum(a, b) * (a * a).sum(1)[:, None]], 1), atol=1e-5)


def test_tiles_are_freed_when_their_handles_die(kernel: Any) -> None:
    body = """
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        for i in range(40):
            tile = nl.load(x)
            tile = tile + float(i)
            nl.store(out, value=tile)
        return out
        """
    x = normal(8, 400)
    assert np.array_equal(kernel(body, x).output, x + 39), "40 tiles of 1,600 bytes pass through 8 KiB"


def test_blocks_live_as_long_as_they_are_used(kernel: Any) -> None:
    body = """
        out = nl.ndarray((8, 8), dtype=nl.float32, buffer=nl.shared_hbm)
        one = nl.load(x)
        sums = nl.ndarray((40, nl.par_dim(8), 8), dtype=nl.float32, buffer=nl.psum)
        sums_too = nl.zeros((2, nl.par_dim(8), 4), dtype=nl.float32, buffer=nl.psum)
        total = nl.zeros((8, 8), dtype=nl.float32)
        total[:, 0:4] += sums_too[1]
        for i in range(40):
            sums[i] = nisa.nc_matmul(one, one)
            if i % 4 == 3:
                for j in range(4):
                    total += sums[i - j]
        nl.store(out, total)
        return out
        """
    x = normal(8, 8)
    result = kernel(body, x)
    assert np.allclose(result.output, 40 * (x.astype(np.float64).T @ x), rtol=1e-4, atol=1e-4)
    assert any("first to its last use" in note for note in result.report["notes"])


def test_a_result_that_somebody_holds_is_not_made_elsewhere(kernel: Any) -> None:
    body = """
        out = nl.ndarray((8, 32), dtype=x.dtype, buffer=nl.shared_hbm)
        both = nl.ndarray((8, 32), dtype=x.dtype)
        twice = nl.add(nl.load(x), 1.0)
        both[:, 0:16] = twice
        both[:, 0:16] += 5.0
        both[:, 16:32] = twice
        nl.store(out, both)
        return out
        """
    x = normal(8, 16)
    assert np.array_equal(kernel(body, x).output, np.concatenate([x + 1 + 5, x + 1], axis=1))


def test_nki_is_there_only_while_a_kernel_runs(kernel: Any) -> None:
    result = plexus.nki.run(f"{EXAMPLES}/rows.py:transpose", normal(4, 4), **GOLDEN)
    assert result.device == "golden"
    assert not [name for name in sys.modules if name.split(".")[0] in ("nki", "neuronxcc")]
    assert importlib.util.find_spec("neuronxcc") is None


def test_a_function_made_among_the_modules() -> None:
    with plexus.nki.modules("tiny"):
        import nki  # type: ignore[import-not-found]
        import nki.language as nl  # type: ignore[import-not-found]

        @nki.jit
        def twice(x: Any) -> Any:
            out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
            nl.store(out, nl.load(x) * 2.0)
            return out

    x = normal(4, 4)
    assert np.array_equal(plexus.nki.run(twice, x, **GOLDEN).output, 2 * x)


HALF = """a, s = nl.load(x), nl.ndarray((8, 16), buffer=nl.psum)
for i in (0, 4):
    nisa.nc_matmul(s[:, i:i + 8], a, a)
"""


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("nisa.tensor_tenser(x)", ("kernels.py:9: nki.isa.tensor_tenser has no instruction", "tensor_tensor")),
        ("nisa.nonzero_with_count(x)", ("kernels.py:9: nki.isa.nonzero_with_count", "not connected yet")),
        ("nl.rand((8, 8))", ("kernels.py:9: nki.language.rand", "no random numbers")),
        ("nl.load(x).flattened()", ("kernels.py:9: an array has no flattened here; it has", "reshape")),
        ("nki.magic()", ("kernels.py:9: nki.magic is not here",)),
        ("nl.ndarray((9, 4), buffer=nl.sbuf)", ("takes 9 partitions; tiny has 8",)),
        (
            "keep = [nl.ndarray((8, 512)) for i in range(9)]",
            ("kernels.py:9: SBUF is full", "3 x 2048 bytes of float32"),
        ),
        ("keep = [nl.zeros((8, 64), buffer=nl.psum) for i in range(99)]", ("kernels.py:9: PSUM is full",)),
        ("nl.load(x) + nl.load(x[0:8, 0:3])", ("of shape (8, 8)", "of shape (8, 3) do not go together")),
        ("nisa.nc_matmul(nl.load(x), nl.load(x[0:4, :]))[...]", ("kernels.py:9:", "same partitions")),
        ("while True: nl.ndarray((1, 1))", ("kernels.py:9: the kernel has made 500 calls", "--limit")),
        ("nisa.nc_matmul(nl.ndarray((8, 4), buffer=nl.psum), nl.load(x), nl.load(x))", ("dst is [8, 8]", "(8, 4)")),
        (HALF, ("kernels.py:11: nc_matmul to", "4 of the 8 sums", "accumulate=")),
        ("nl.exp(x)", ("kernels.py:9: nl.exp reads x, which lies in HBM",)),
        ("nl.store(x, value=0.0)", ("kernels.py:9: the kernel writes to its argument x",)),
        ("nl.load(x[0:9, :])", ("kernels.py:9: x has 8 elements along an axis; the slice 0:9:1",)),
        ("nl.load(x[nl.arange(9)[:, None], nl.arange(8)[None, :]])", ("indexed from 0 to 8", "a mask cuts")),
        ("nl.load(x[nl.arange(8)[:, None] ** 2, nl.arange(1)[None, :]])", ("must be affine",)),
        ("assert x.shape == (1, 1), 'wrong shape'", ("kernels.py:9: AssertionError: wrong shape",)),
        ("if nl.load(x) > 0: pass", ("nothing can branch on it",)),
        ("nisa.tensor_copy()", ("kernels.py:9: nki.isa.tensor_copy: missing a required argument",)),
        ("return nl.load(x)", ("the kernel returns", "nl.shared_hbm")),
        ("return x", ("the kernel returns",)),
        ("nl.sum(nl.load(x), axis=0)[...]", ("that of partitions",)),
        ("nl.ndarray((8, 8), dtype='float7')", ("there is no dtype 'float7'",)),
        ("nisa.tensor_reduce(nl.multiply, nl.load(x), axis=1)[...]", ("no instruction reduces by multiply",)),
    ],
)
def test_errors_are_one_sentence_with_the_line(kernel: Any, body: str, says: tuple[str, ...]) -> None:
    with pytest.raises(plexus.Error) as error:
        kernel(body, normal(8, 8), limit=500)
    text = str(error.value)
    assert all(part in text for part in says), text
    assert "\n" not in text and "firmware" not in text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import nki.isa as nisa\nfrom nki.isa import nothing_like_it\n", "kernels.py:2: ImportError"),
        ("import neuronxcc.nki.kernels.vision\n", "kernels.py:1: ModuleNotFoundError"),
        ("import sys\nsys.exit('done')\n", "kernels.py:2: SystemExit: done"),
        ("def f(x:\n", "kernels.py:1: SyntaxError"),
        ("def g(x):\n    return x\n", "kernels.py has no kernel 'f'; it has g"),
        ("import nki.language as nl\nx = nl.zeros((1, 1))\n", "kernels.py:2: calls of nki work while a kernel runs"),
        ("def f(x, y):\n    return x\n", "kernel f: missing a required argument: 'y'; it takes (x, y)"),
    ],
)
def test_files_that_do_not_import(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(text)
    with pytest.raises(plexus.Error) as error:
        plexus.nki.run(f"{path}:f", normal(8, 8), **GOLDEN)
    assert str(error.value).startswith(says) and not [n for n in sys.modules if n.startswith(("nki", "neuronxcc"))]


@pytest.mark.parametrize("name", ["kernels.py", ":f", "gone.py:f"])
def test_a_kernel_is_named_by_file_and_function(name: str) -> None:
    with pytest.raises(plexus.Error, match=r"FILE\.py:KERNEL|there is no file"):
        plexus.nki.run(name, normal(4, 4), **GOLDEN)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given, out = tmp_path / "in.npz", tmp_path / "out.npz"
    np.savez(given, x=X, weight=W, epsilon=1e-5)
    words = ["nki", f"{EXAMPLES}/rows.py:rmsnorm", "--in", str(given), "--config", "tiny", "--device", "golden"]
    assert main([*words, "--out", str(out)]) == 0
    with np.load(out) as found:
        assert np.allclose(found["output"], NORMAL * W, rtol=1e-4)
    assert "note: one partition broadcast to several" in capsys.readouterr().out
    assert main([*words, "-p", "weight=3"]) == 2
    assert capsys.readouterr().err == "plexus: argument weight is given twice\n"
    assert main([*words, "--limit", "3"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("plexus: rows.py:") and error.count("\n") == 1 and "Traceback" not in error


def test_the_table_of_the_page_is_fresh() -> None:
    page = coverage.PAGE.read_text(encoding="utf-8")
    assert coverage.with_table(page) == page, "python -m firmware.nki.coverage --write"


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("made", ["ndarray", "zeros"])
def test_a_product_of_nl_is_added_in_psum(kernel: Any, made: str, turned: bool) -> None:
    body = f"""
        out = nl.ndarray((8, 16), dtype=nl.float32, buffer=nl.shared_hbm)
        sums = nl.{made}((8, 16), dtype=nl.float32, buffer=nl.psum)
        for k in nl.affine_range(2):
            sums += nl.matmul(nl.load(x[8 * k:8 * k + 8, :]), nl.load(y[8 * k:8 * k + 8, :]), transpose_x={turned})
        nl.store(out, sums)
        return out
        """
    a, b = (normal(16, n).astype(ml_dtypes.bfloat16) for n in (8, 16))
    result = kernel(body, a, b)
    blocks = [(p.astype(np.float64), q.astype(np.float64)) for p, q in zip(np.split(a, 2), np.split(b, 2), strict=True)]
    wanted = sum((p.T if turned else p) @ q for p, q in blocks)
    assert np.allclose(result.output, wanted, rtol=1e-5, atol=1e-5)
    assert not [note for note in result.report["notes"] if "PSUM" in note and "copied" in note]


def test_a_product_that_is_used_otherwise_or_reads_the_sums_is_added_by_the_vector_engine(kernel: Any) -> None:
    body = """
        out = nl.ndarray((8, 8), dtype=nl.float32, buffer=nl.shared_hbm)
        sums = nl.matmul(nl.load(x), nl.load(x), transpose_x=True)
        kept = nl.matmul(nl.load(x), nl.load(y), transpose_x=True)
        sums += kept
        sums += nl.matmul(sums, sums, transpose_x=True)
        sums += kept
        nl.store(out, sums)
        return out
        """
    a, b = normal(8, 8), normal(8, 8, seed=1)
    first = a.T.astype(np.float64) @ a + a.T @ b
    wanted = first + first.T @ first + a.T @ b
    assert np.allclose(kernel(body, a, b).output, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("body", "says", "not_said"),
    [
        ("nl.ndarray((8, 8), dtype='float64')", "there is no dtype 'float64'; there are float32, tfloat32, bf", "exp"),
        ("nl.ndarray((8, 8), dtype=np.float64)", "there is no dtype float64; there are float32, tfloat32, bf", "exp"),
        (
            "nl.ndarray((8, 8), dtype=nl.float64)",
            "nki.language.float64 is no dtype of the machine; there are fl",
            "exp",
        ),
        ("nl.dropout(nl.load(x), 0.1)", "nki.language.dropout has no instruction or lowering here: no random", ";"),
        (
            "keep = [nl.ndarray((8, 512)) for i in range(9)]",
            "of 7168 are free (the other 1024 are for tables of f",
            "\n",
        ),
    ],
)
def test_errors_say_what_helps(kernel: Any, body: str, says: str, not_said: str) -> None:
    with pytest.raises(plexus.Error) as error:
        kernel(f"import numpy as np; {body}", normal(8, 8))
    assert says in str(error.value) and not_said not in str(error.value)


def test_a_row_of_one_axis(kernel: Any) -> None:
    body = """
        out = nl.ndarray((8, 20), dtype=nl.float32, buffer=nl.shared_hbm)
        nl.store(out, nl.load(x.reshape((1, 20))).broadcast_to((8, 20)))
        return out
        """
    x = normal(20)
    assert np.array_equal(kernel(body, x).output, np.tile(x, (8, 1)))
