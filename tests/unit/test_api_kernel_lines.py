"""`plexus.run` with a kernel that is wrong: the sentence begins with the line of the kernel, once."""

import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import plexus
from firmware.views import KernelError, MemoryFullError

GOLDEN: Any = {"config": "tiny", "device": "golden"}
X = np.arange(12 * 40, dtype=np.float32).reshape(12, 40)
HEAD = "def kernel(k, x, helper=None):\n    y = k.hbm('y', (8, 12), 'fp32')\n"
TILE = "    t = k.sbuf('t', partitions=8, columns=12, dtype='fp32')\n"


def written(folder: Path, text: str, name: str = "a.py") -> Callable[..., Any]:
    """The function `kernel` of a file of the user's."""
    path = folder / name
    path.write_text(text)
    module = ModuleType(name)
    exec(compile(text, str(path), "exec"), vars(module))
    return module.kernel


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("    x[:, 32:41]", "a.py:4: x has 40 elements along axis 1; the index 32:41:1 is not inside"),
        ("    x[4:13]", "a.py:4: x has 12 elements along axis 0; the index 4:13:1 is not inside"),
        ("    t[0:9, :]", "a.py:4: t has 8 elements along axis 0 (partitions); the index 0:9:1 is not inside"),
        ("    t[:, 4:13]", "a.py:4: t has 12 elements along axis 1; the index 4:13:1 is not inside"),
        ("    k.vector.copy(t[:4, :], t[:, :])", "a.py:4: "),
        ("    k.gpsimd.load('absent.elf')", "a.py:4: "),
    ],
)
def test_errors_name_the_line(tmp_path: Path, said: str, sentence: str) -> None:
    kernel = written(tmp_path, HEAD + TILE + said + "\n")
    with pytest.raises(plexus.Error) as caught:
        plexus.run(kernel, {"x": X}, **GOLDEN)
    assert str(caught.value).startswith(sentence) and len(re.findall(r"\.py:\d+", str(caught.value))) == 1


def test_memory_that_is_full_stays_that_error(tmp_path: Path) -> None:
    kernel = written(tmp_path, HEAD + "    k.sbuf('t', partitions=8, columns=1 << 20, dtype='fp32')\n")
    with pytest.raises(MemoryFullError, match=r"^a\.py:3: tile t needs 4194304 bytes"):
        plexus.run(kernel, {"x": X}, **GOLDEN)


def test_the_line_is_that_of_a_helper_and_said_once(tmp_path: Path) -> None:
    helper = written(tmp_path, "def kernel(tile):\n    return tile[:, 99:100]\n", "b.py")
    kernel = written(tmp_path, HEAD + TILE + "    helper(t)\n")
    with pytest.raises(KernelError, match=r"^b\.py:2: t has 12 elements"):
        plexus.run(lambda k, x: kernel(k, x, helper), {"x": X}, **GOLDEN)
    with pytest.raises(KernelError, match=r"^net\.py:9: a sentence"):
        plexus.run(lambda k, x: _fails(), {"x": X}, **GOLDEN)


def _fails() -> None:
    raise KernelError("net.py:9: a sentence")


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("k.scalar.gelu(t[:, :])", "k.scalar.gelu; there are activation, barrier, copy, .*gelu is a function of"),
        ("k.vector.gelu(t[:, :])", "k.vector.gelu; .*is a function of k.scalar.activation"),
        ("k.vector.add(t[:, :])", "there are .*tensor_tensor, .*add is an operator, as in k.vector.tensor_tensor"),
        ("k.scalar.add(t[:, :])", "add is an operator, as in k.vector.tensor_tensor"),
        ("k.tensor.mul(t[:, :])", "k.tensor.mul; there are barrier, load, matmul, nop, transpose, wait$"),
    ],
)
def test_an_engine_says_what_it_has(tmp_path: Path, said: str, sentence: str) -> None:
    kernel = written(tmp_path, HEAD + TILE + f"    {said}\n")
    with pytest.raises(KernelError, match=r"^a\.py:4: there is no .*" + sentence):
        plexus.run(kernel, {"x": X}, **GOLDEN)


def test_engines_can_be_asked_for_what_they_have() -> None:
    k = plexus.Kernel(plexus.load_config("tiny"), "k")
    assert hasattr(k.vector, "copy") and not hasattr(k.vector, "add") and not hasattr(k.scalar, "__array__")


def turned(k: plexus.Kernel, b: Any, x: Any) -> None:
    """The two lines of docs/kernels.md about views."""
    rows, bias = (k.sbuf(n, partitions=8, columns=12, dtype="fp32") for n in ("rows", "bias"))
    k.dma(bias[:, :], b.repeat(8))
    k.dma(rows[:, :], x[:, 0:8].permute((1, 0)))
    k.dma(k.hbm("bias y", (8, 12), "fp32")[:, :], bias[:, :])
    k.dma(k.hbm("rows y", (8, 12), "fp32")[:, :], rows[:, :])


def test_views_repeat_and_turn_as_the_page_says() -> None:
    result = plexus.run(turned, {"b": X[0, :12], "x": X}, **GOLDEN)
    assert np.array_equal(result["bias y"], np.tile(X[0, :12], (8, 1)))
    assert np.array_equal(result["rows y"], X[:, :8].T)
