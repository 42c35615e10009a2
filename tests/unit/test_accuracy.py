"""No function is less accurate than docs/accuracy.md says, nor than what is promised; specials are exact."""

import hashlib
from typing import Any

import mpmath
import numpy as np
import pytest

from rtl.contract.activation_tables import TABLE_FILE, load_words, table
from verif.accuracy.bf16 import measure, names, through
from verif.accuracy.dense import BOUNDS, TAILS, inputs, judge, measure_dense
from verif.accuracy.report import PAGE, page, read_page
from verif.activations.fit import fit, text
from verif.activations.functions import FUNCTIONS, TABLED
from verif.activations.truth import FP32, NEARLY, decided, nearly
from verif.golden.activation import direct, pre, through_table

FIT_SHA256 = "eef22d1e7b9c7b0dfe7032272a608d4623c7f18cc0f109ddc70a55af13612b7e"
ROWS = 8192  # scalar.table_rows of all named configurations


@pytest.mark.parametrize("name", names())
def test_the_page_says_what_is_measured(name: str) -> None:
    """All of BF16 anew; of the dense inputs the one that the page calls the worst."""
    written = read_page(PAGE.read_text())[name]
    now, worst = measure(name), judge(name, np.array([int(written[7].strip("`"), 16)], np.uint32))
    assert read_page(page([(now, worst)]))[name] == written
    assert now.monotone is not False


@pytest.mark.parametrize("name", names())
def test_every_fp32_input_stays_inside_its_bound(name: str) -> None:
    """Numbers that neither the fit nor the page has seen."""
    now = measure_dense(name, 200_000, seed=23)
    assert now.fp32_ulp <= BOUNDS[name]
    assert now.tail_ulp is None or now.tail_ulp <= TAILS[name][2]
    assert float(read_page(PAGE.read_text())[name][6]) <= BOUNDS[name]


@pytest.mark.parametrize("name", TABLED)
def test_subnormal_inputs(name: str) -> None:
    """Every length of them and every BF16 one: the bound, the right sign, NaN only where there is no value."""
    lengths = np.arange(1, 24)
    rest = np.random.default_rng(3).integers(0, 1 << (lengths - 1), (500, 23)) | 1 << (lengths - 1)
    small = np.unique(np.concatenate([rest.ravel(), np.arange(1, 128) << 16])).astype(np.uint32)
    codes = np.concatenate([small, small | np.uint32(1 << 31)])
    assert judge(name, codes).fp32_ulp <= BOUNDS[name]
    got, truth = through(name, codes), nearly(name, codes.view(np.float32).astype(np.float64))
    nan = np.isnan(truth)
    assert ((got == 0x7FC00000) == nan).all()
    assert ((got >> 31 == 1) == np.signbit(truth))[~nan].all()


@pytest.mark.parametrize("name", TABLED)
def test_a_result_that_underflows_keeps_the_sign_of_the_truth(name: str) -> None:
    codes = np.concatenate([inputs(30_000, 29), (np.arange(1 << 16) << 16).astype(np.uint32)])
    codes = codes[(codes << np.uint32(1) != 0) & (codes & 0x7FFFFFFF < 0x7F800000)]
    got, truth = through(name, codes), nearly(name, codes.view(np.float32).astype(np.float64))
    zero = (got << np.uint32(1) == 0) & (truth != 0)  # log(1) is +0
    assert ((got >> 31 == 1) == np.signbit(truth))[zero].all()
    limit = through(name, np.array([0x7F800000, 0xFF800000], np.uint32))
    far = through(name, np.array([0x7F7FFFFF, 0xFF7FFFFF], np.uint32))
    still = far << np.uint32(1) == 0
    assert (limit == far)[still].all(), "a function that is 0 far out is the same 0 at infinity"


def test_a_share_that_is_not_all_is_not_called_all() -> None:
    """128 results of silu are lost by rounding twice; no fixed precision sees it."""
    assert measure("silu").correct == measure("silu").attainable == 65_150
    assert "65150 of 65278" in page([(measure("silu"), measure_dense("silu", 1000))])


@pytest.mark.parametrize("name", TABLED)
def test_truth_in_float64_is_near(name: str) -> None:
    """What decides most roundings and judges FP32 inputs, on some of every binade, against mpmath."""
    x = inputs(700, 5).view(np.float32).astype(np.float64)
    with mpmath.workprec(400):
        for value, near in zip(x.tolist(), nearly(name, x).tolist(), strict=True):
            truth: Any = FUNCTIONS[name](mpmath.mpf(value))
            if mpmath.isnan(truth):
                assert near != near
            elif abs(truth) < 2.0**-300:
                assert abs(near) < 2.0**-300 and np.signbit(near) == (truth < 0)
            elif abs(truth) < 2.0**129:
                assert abs(near - truth) <= abs(truth) * NEARLY / 4, value


def test_a_tie_is_decided() -> None:
    """x/2 + x^2/4 is above the middle for positive x, and -x/2 + x^2/4 below it in size."""
    x = np.array([0x00010000, 0x80010000, 0x00030000, 0x80030000], np.uint32).view(np.float32).astype(np.float64)
    assert (decided("silu", x) / 2.0**-133).tolist() == [1, 0, 2, -1]
    assert (decided("silu", x, FP32) / 2.0**-133).tolist() == [0.5, -0.5, 1.5, -1.5]


def test_tables_are_those_of_the_fit() -> None:
    """All of it by its hash, and two functions fitted anew."""
    assert hashlib.sha256(TABLE_FILE.read_bytes()).hexdigest() == FIT_SHA256
    for name in ("tanh", "sqrt"):
        assert text({name: fit(name)}) in TABLE_FILE.read_text()


def test_all_tables_fit_together() -> None:
    words = load_words(TABLED, ROWS)
    assert len({address for address, _ in words}) == len(words)
    with pytest.raises(ValueError, match="more than scalar.table_rows"):
        load_words(TABLED, 1024)
    with pytest.raises(ValueError, match="no table of 'copy'"):
        load_words(["copy"], ROWS)


INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    ("name", "x", "want"),
    [("log", 0.0, -INF), ("log", -0.0, -INF), ("log", -1.0, NAN), ("log", INF, INF), ("log", -INF, NAN)]
    + [("log", 1.0, 0.0)]
    + [("sqrt", -1.0, NAN), ("sqrt", -0.0, -0.0), ("sqrt", INF, INF), ("sqrt", 4.0, 2.0), ("rsqrt", 0.0, INF)]
    + [("rsqrt", -4.0, NAN), ("rsqrt", INF, 0.0), ("reciprocal", 0.0, INF), ("reciprocal", -0.0, -INF)]
    + [("reciprocal", -INF, -0.0), ("tanh", INF, 1.0), ("tanh", -INF, -1.0), ("sigmoid", -INF, 0.0)]
    + [("sigmoid", INF, 1.0)]
    + [("erf", -INF, -1.0), ("exp", -INF, 0.0), ("exp", INF, INF), ("exp", 0.0, 1.0), ("gelu", INF, INF)]
    + [("softplus", -INF, 0.0), ("sin", 0.0, 0.0), ("sin", -0.0, -0.0)],
)  # fmt: skip
def test_specials(name: str, x: float, want: float) -> None:
    got = through_table(np.array([x], np.float32).view(np.uint32), table(name))[0]
    expected = 0x7FC00000 if want != want else int(np.float32(want).view(np.uint32))
    assert got == expected


@pytest.mark.parametrize("name", TABLED)
def test_nan_gives_the_canonical_nan(name: str) -> None:
    codes = np.array([0x7F800001, 0xFFC00000, 0x7FFFFFFF], np.uint32)
    assert (through_table(codes, table(name)) == 0x7FC00000).all()


def test_sine_goes_on_with_its_last_cubic() -> None:
    got = through_table(np.array([9.0, -9.0], np.float32).view(np.uint32), table("sin")).view(np.float32)
    d = 9 - np.pi
    assert np.allclose(got, [d**3 / 6 - d, d - d**3 / 6], rtol=1e-6)


def test_functions_without_a_table() -> None:
    x = np.array([2.0, -2.0, 0.0, -0.0, INF, -INF, NAN], np.float32)
    slope = np.array([0x3E800000], np.uint32)

    def of(name: str) -> list[str]:
        return [str(v) for v in direct(x.view(np.uint32), name, slope).view(np.float32)]

    assert of("copy") == ["2.0", "-2.0", "0.0", "-0.0", "inf", "-inf", "nan"]
    assert of("abs") == ["2.0", "2.0", "0.0", "0.0", "inf", "inf", "nan"]
    assert of("square") == ["4.0", "4.0", "0.0", "0.0", "inf", "inf", "nan"]
    assert of("relu") == ["2.0", "0.0", "0.0", "0.0", "inf", "0.0", "nan"]
    assert of("prelu") == ["2.0", "-0.5", "0.0", "-0.0", "inf", "-inf", "nan"]
    assert of("sign") == ["1.0", "-1.0", "0.0", "-0.0", "1.0", "-1.0", "nan"]


def test_a_bias_of_zero_is_not_added() -> None:
    x = np.array([0x80000000], np.uint32)
    one = np.array([0x3F800000], np.uint32)
    assert pre(x, one, np.zeros(1, np.uint32))[0] == 0x80000000
    assert pre(one, one, one)[0] == 0x40000000
