"""MX quantisation through `eval`: every code against every exponent of the largest number."""

import numpy as np
import pytest

from rtl.contract.config import named
from rtl.contract.formats import MX_BLOCK, MX_EMAX
from sim.errors import PlexusError
from sim.evaluate import evaluate
from verif.golden.quantize import RULES, quantize_mx

pytestmark = pytest.mark.sim

TINY = named("tiny")
SPECIAL = {"bf16": 0x7F80, "fp16": 0x7C00}
PLACES = {"bf16": 7, "fp16": 10}


def largest_numbers(src: str) -> list[int]:
    """A number of every exponent, with a fraction of zeros and one of ones; every power of two of the subnormals."""
    places, special = PLACES[src], SPECIAL[src]
    normal = [field << places | low for field in range(1, special >> places) for low in (0, (1 << places) - 1)]
    return [0, *(1 << n for n in range(places)), *normal]


def against(src: str, largest: int) -> np.ndarray:
    """Blocks with every code, of either sign, that is no larger than `largest`, which each of them has too."""
    sizes = np.arange(largest + 1, dtype=np.int64)
    codes = np.concatenate([sizes, sizes | 0x8000])
    share = MX_BLOCK - 1
    rows = np.full((-(-len(codes) // share), share), largest, np.int64)
    rows.reshape(-1)[: len(codes)] = codes
    return np.insert(rows, largest % MX_BLOCK, largest, axis=1).astype(np.uint16)


@pytest.mark.parametrize("src", sorted(SPECIAL))
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("fmt", MX_EMAX)
def test_every_code_below_every_exponent(fmt: str, rule: str, src: str) -> None:
    """All codes of either sign, divided by the scale of every exponent that the largest number may have."""
    texts = {"fmt": np.array(fmt), "rule": np.array(rule), "src": np.array(src)}
    compared = 0
    tops = largest_numbers(src)
    for first in range(0, len(tops), 32):
        x = np.concatenate([against(src, top) for top in tops[first : first + 32]])
        got = evaluate("quantize_mx", {"x": x, **texts}, TINY)
        elements, scale = quantize_mx(x, fmt, rule, src)
        assert np.array_equal(got["scale"], scale)
        assert np.array_equal(got["elements"], elements)
        compared += elements.size
    assert compared > {"bf16": 16_000_000, "fp16": 1_900_000}[src]


@pytest.mark.parametrize("src", sorted(SPECIAL))
def test_every_special_code_at_every_place(src: str) -> None:
    """NaNs and infinities of either sign, alone in their block, at each of the 32 places in turn."""
    codes = np.arange(SPECIAL[src], 0x8000)
    codes = np.concatenate([codes, codes | 0x8000])
    x = np.random.default_rng(1).integers(0, 0x3000, (len(codes), MX_BLOCK))
    x[np.arange(len(codes)), np.arange(len(codes)) % MX_BLOCK] = codes
    for fmt in MX_EMAX:
        got = evaluate("quantize_mx", {"x": x.astype(np.uint16), "fmt": np.array(fmt), "src": np.array(src)}, TINY)
        assert (got["scale"] == 0xFF).all() and not got["elements"].any()


def test_defaults_and_refusals() -> None:
    x = np.random.default_rng(2).integers(0, 1 << 16, (100, MX_BLOCK)).astype(np.uint16)
    got = evaluate("quantize_mx", {"x": x, "fmt": np.array("e2m1")}, TINY)
    elements, scale = quantize_mx(x, "e2m1", "ocp", "bf16")
    assert np.array_equal(got["elements"], elements) and np.array_equal(got["scale"], scale)
    assert got["elements"].dtype == got["scale"].dtype == np.uint8
    for change, says in (
        ({"x": x[:, :31]}, r"x must have the shape \(n, 32\), not \(100, 31\)"),
        ({"x": x.astype(np.float32)}, "x must hold bit patterns as uint16, not float32"),
        ({"fmt": np.array("e4m3")}, "fmt must be one of e4m3fn, e5m2, e2m1, not 'e4m3'"),
        ({"rule": np.array("max")}, "rule must be one of ocp, emax-1, not 'max'"),
        ({"src": np.array("fp32")}, "src must be one of bf16, fp16, not 'fp32'"),
    ):
        with pytest.raises(PlexusError, match=says):
            evaluate("quantize_mx", {"x": x, "fmt": np.array("e2m1"), **change}, TINY)
