"""Masks of nisa calls and of results that are assigned, on the golden machine."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plexus

HEAD = "import nki\nimport nki.isa as nisa\nimport nki.language as nl\n\n\n@nki.jit\ndef f(x):\n"
BODY = """    tile, to = nl.load(x), nl.full((8, 12), 7.0, x.dtype)
    i = nl.mgrid[0:8, 0:12]
    {call}
    out = nl.ndarray((8, 12), x.dtype, buffer=nl.shared_hbm)
    nl.store(out, to)
    return out
"""
X = np.random.default_rng(0).standard_normal((8, 12), np.float32)
P, F = np.ogrid[:8, :12]
MASKS = {
    "(i.p < 5) & (i.x < 7)": (P < 5) & (F < 7),
    "i.x > i.p": F > P,
    "i.p % 2 == 1": (P % 2 == 1) & (F >= 0),
    "i.p < 0": (P < 0) & (F < 0),
    "i.x < 12": (P >= 0) & (F < 12),
}
TWICE = (X + np.float32(1)) + X
CALLS = {
    "nisa.tensor_copy(dst=to, src=tile, mask={m})": X,
    "nisa.tensor_scalar(dst=to, data=tile, op0=nl.multiply, operand0=2.0, mask={m})": 2 * X,
    "nisa.tensor_tensor(dst=to, data1=tile, data2=tile, op=nl.add, mask={m})": X + X,
    "nisa.scalar_tensor_tensor(to, tile, op0=nl.add, operand0=1.0, op1=nl.add, operand1=tile, mask={m})": TWICE,
    "nisa.activation(dst=to, op=nl.square, data=tile, mask={m})": X * X,
    "nisa.memset(dst=to, value=3.0, mask={m})": np.full_like(X, 3),
    "to[...] = nisa.tensor_scalar(tile, nl.multiply, 2.0, mask={m})": 2 * X,
    "to[...] = nl.add(tile, tile, mask={m})": X + X,
}


def run(tmp_path: Path, call: str) -> np.ndarray:
    path = tmp_path / "kernels.py"
    path.write_text(HEAD + BODY.format(call=call))
    return plexus.nki.run(f"{path}:f", X, config="tiny", device="golden").output


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("mask", MASKS)
def test_what_a_mask_leaves_out_stays(tmp_path: Path, call: str, mask: str) -> None:
    found = run(tmp_path, call.format(m=mask))
    assert np.array_equal(found, np.where(MASKS[mask], CALLS[call], np.float32(7)))


def test_a_reduction_with_a_mask_of_rows(tmp_path: Path) -> None:
    found = run(tmp_path, "to[:, 0:1] = nl.max(tile[i.p, i.x], axis=1, mask=(i.p < 5))")
    wanted = np.full((8, 12), 7, np.float32)
    wanted[:5, 0] = X[:5].max(1)
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ("nisa.tensor_copy(dst=to, src=tile, mask=tile > 0)", "is an array; a mask is of index arrays"),
        ("nisa.tensor_copy(dst=to, src=tile, mask=nl.arange(5) < 3)", r"has shape \(5,\)"),
        ("nisa.max8(dst=to[:, 0:8], src=tile, mask=i.p < 3)", "max8 takes no mask"),
        ("nl.store(x, tile, mask=i.x > 2)", "is no box"),
    ],
)
def test_wrong_masks_get_a_sentence(tmp_path: Path, call: str, sentence: str) -> None:
    with pytest.raises(plexus.Error, match=sentence):
        run(tmp_path, call)


def test_any_instruction_keeps_its_bits(tmp_path: Path) -> None:
    """A mask that leaves nothing out changes nothing of the program."""
    results: list[Any] = [run(tmp_path, call.format(m=m)) for call in list(CALLS)[:2] for m in ("None", "i.x < 12")]
    assert np.array_equal(results[0], results[1]) and np.array_equal(results[2], results[3])
