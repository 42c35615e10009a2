"""Golden numbers and golden array against outside truth: exact fractions, ml_dtypes, NumPy, single PEs."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtl.contract.formats import FORMATS, Format
from verif.golden.numeric import bf16_mac, canonical, decode, fp16_mac, fp32_add, fused
from verif.golden.tensor import TensorState, chain

NAN = 0x7FC00000
INFINITY = 0x7F800000


def value_of(code: int, fmt: Format) -> Fraction | str:
    """What a code means, from the format's numbers alone: a fraction, or "nan", "inf", "-inf"."""
    sign = -1 if code >> (fmt.bits - 1) else 1
    field = code >> fmt.mantissa & ((1 << fmt.exponent) - 1)
    fraction = code & ((1 << fmt.mantissa) - 1)
    if field == (1 << fmt.exponent) - 1:
        return "nan" if fraction else ("inf" if sign > 0 else "-inf")
    significand = fraction + ((1 << fmt.mantissa) if field else 0)
    return sign * significand * Fraction(2) ** (max(field, 1) - fmt.bias - fmt.mantissa)


def rounded(exact: Fraction, zero_sign: int) -> int:
    """The FP32 code nearest to `exact`, ties to even, with gradual underflow; integers only."""
    if exact == 0:
        return zero_sign << 31
    sign = int(exact < 0)
    size = abs(exact)
    exponent = -149  # of the last place
    while size >= Fraction(2) ** (exponent + 24):
        exponent += 1
    scaled = size / Fraction(2) ** exponent
    whole = scaled.numerator // scaled.denominator
    rest = scaled - whole
    if rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole & 1):
        whole += 1
    code = whole if exponent == -149 else ((exponent + 149) << 23) + whole
    return sign << 31 | min(code, INFINITY)


def exact_mac(a: int, b: int, acc: int, fmt: Format) -> int:
    """RN32(a * b + acc) by fractions and case analysis."""
    x, y, z = value_of(a, fmt), value_of(b, fmt), value_of(acc, FORMATS["fp32"])
    sign = (a >> (fmt.bits - 1)) ^ (b >> (fmt.bits - 1))
    if "nan" in (x, y, z):
        return NAN
    if isinstance(x, str) or isinstance(y, str):
        if 0 in (x, y):
            return NAN
        if isinstance(z, str) and (z == "-inf") != bool(sign):
            return NAN
        return sign << 31 | INFINITY
    if isinstance(z, str):
        return acc
    zeros_agree = sign & (acc >> 31) if x * y == 0 and z == 0 else 0
    return rounded(x * y + z, zeros_agree)


def exact_add(a: int, b: int) -> int:
    """RN32(a + b) as RN32(a * 1 + b)."""
    return exact_mac(a, FORMATS["fp32"].bias << 23, b, FORMATS["fp32"])


def hard_codes(rng: np.random.Generator, count: int, fmt: Format) -> np.ndarray:
    """Codes with a bias to few exponents, zeros, specials and subnormals."""
    codes = rng.integers(0, 1 << fmt.bits, count, dtype=np.uint64)
    middle = (codes & ((1 << fmt.mantissa) - 1)) | fmt.bias << fmt.mantissa
    low = codes & ((1 << (fmt.bits - 1)) | ((1 << fmt.mantissa) - 1))
    top = codes | ((1 << fmt.exponent) - 1) << fmt.mantissa
    zero = codes & (1 << (fmt.bits - 1))
    kind = rng.integers(0, 8, count)
    return np.select([kind == 0, kind == 1, kind == 2, kind == 3], [middle, low, top, zero], codes)


@pytest.mark.parametrize(("name", "kind"), [("bf16", ml_dtypes.bfloat16), ("fp16", np.float16)])
def test_every_code_decodes_as_outside_and_by_the_formats_numbers(name: str, kind: type) -> None:
    codes = np.arange(1 << 16, dtype=np.uint16)
    with np.errstate(invalid="ignore"):
        outside = codes.view(kind).astype(np.float32)
    ours = decode(codes, name)
    assert np.array_equal(canonical(ours), canonical(outside))
    for code in range(0, 1 << 16, 7):
        meant = value_of(code, FORMATS[name])
        if isinstance(meant, Fraction):
            assert Fraction(float(ours[code])) == meant


def test_unknown_operand_format_is_refused() -> None:
    with pytest.raises(ValueError, match="not int8"):
        decode(np.zeros(1, np.uint16), "int8")


@pytest.mark.parametrize(("name", "golden"), [("bf16", bf16_mac), ("fp16", fp16_mac)])
def test_mac_equals_exact_fractions(name: str, golden) -> None:  # noqa: ANN001
    rng = np.random.default_rng(1)
    fmt = FORMATS[name]
    count = 4000
    a = hard_codes(rng, count, fmt).astype(np.uint16)
    b = hard_codes(rng, count, fmt).astype(np.uint16)
    acc = hard_codes(rng, count, FORMATS["fp32"]).astype(np.uint32)
    with np.errstate(all="ignore"):
        product = decode(a, name) * decode(b, name)
    cancels = (product.view(np.uint32) ^ np.uint32(1 << 31)) + rng.integers(-2, 3, count).astype(np.uint32)
    acc = np.where(rng.random(count) < 0.3, cancels, acc).astype(np.uint32)
    out = golden(a, b, acc)
    for i in range(count):
        assert int(out[i]) == exact_mac(int(a[i]), int(b[i]), int(acc[i]), fmt), (
            f"{name} {int(a[i]):#x} * {int(b[i]):#x} + {int(acc[i]):#x}"
        )


def test_two_roundings_by_way_of_float64_are_one_for_twelve_bit_operands() -> None:
    """The proof of the route, where it is tightest: 24-bit products beside, below and across each place of the
    accumulator, in the subnormal range, at overflow, and at distances where float64 itself rounds."""
    rng = np.random.default_rng(2)
    count = 6000
    x = rng.integers(1 << 11, 1 << 12, count) | 1
    y = rng.integers(1 << 11, 1 << 12, count) | 1
    ex = rng.integers(-149, 117, count)
    acc = hard_codes(rng, count, FORMATS["fp32"]).astype(np.uint32) & np.uint32(0xFF7FFFFF)  # finite
    field = np.maximum((acc >> 23).astype(np.int64) & 255, 1)
    distance = rng.integers(-60, 61, count)  # of the product's last place from the accumulator's
    total = np.clip(field - 150 + distance, -298, 254)  # exponent of the product's last place
    for i in range(count):
        product = Fraction(int(x[i]) * int(y[i])) * Fraction(2) ** int(total[i])
        low = min(max(int(ex[i]), int(total[i]) - 105), 105)  # a share of the exponent that keeps both in float64
        a = np.float64(int(x[i])) * 2.0**low
        b = np.float64(int(y[i])) * 2.0 ** (int(total[i]) - low)
        assert Fraction(float(a)) * Fraction(float(b)) == product
        start = acc[i : i + 1].view(np.float32)
        with np.errstate(all="ignore"):
            ours = (a * b + start.astype(np.float64)).astype(np.float32)
        meant = value_of(int(acc[i]), FORMATS["fp32"])
        assert isinstance(meant, Fraction)
        assert int(canonical(ours)[0]) == rounded(product + meant, 0)


def test_fp32_add_equals_exact_fractions_and_numpy() -> None:
    rng = np.random.default_rng(3)
    count = 4000
    a = hard_codes(rng, count, FORMATS["fp32"]).astype(np.uint32)
    b = hard_codes(rng, count, FORMATS["fp32"]).astype(np.uint32)
    near = (a ^ np.uint32(1 << 31)) + rng.integers(-2, 3, count).astype(np.uint32)
    b = np.where(rng.random(count) < 0.3, near, b).astype(np.uint32)
    out = fp32_add(a, b)
    with np.errstate(all="ignore"):
        host = canonical(a.view(np.float32) + b.view(np.float32))
    assert np.array_equal(out, host)
    for i in range(count):
        assert int(out[i]) == exact_add(int(a[i]), int(b[i])), f"{int(a[i]):#x} + {int(b[i]):#x}"


@pytest.mark.parametrize(
    ("a", "b", "acc", "want"),
    [
        (0x3F80, 0x3F80, 0x33800000, 0x3F800000),  # 1 + 2^-24: a tie, to even
        (0x3F80, 0x3F80, 0x33800001, 0x3F800001),  # just above the tie
        (0x3F81, 0x3F80, 0xBF810000, 0x00000000),  # exact cancellation gives +0
        (0x8000, 0x3F80, 0x80000000, 0x80000000),  # -0 * 1 + -0
        (0x8000, 0x3F80, 0x00000000, 0x00000000),  # -0 + +0
        (0x0001, 0x3F00, 0x00000000, 0x00008000),  # a subnormal BF16 halved: 2^-134
        (0x0001, 0x2880, 0x00000000, 0x00000000),  # far below the last place
        (0x8001, 0x2880, 0x00000000, 0x80000000),  # the same from below keeps its sign
        (0x7F7F, 0x7F7F, 0x00000000, 0x7F800000),  # overflow
        (0x7F7F, 0x4000, 0xFF7FFFFF, 0x7F7E0001),  # beyond FP32 on the way, within at the end
        (0x7F80, 0x0000, 0x3F800000, NAN),  # infinity times zero
        (0x7F80, 0x3F80, 0xFF800000, NAN),  # infinity minus infinity
        (0xFFC1, 0x3F80, 0x00000000, NAN),  # sign and payload of a NaN are gone
    ],
)
def test_pinned_cases_of_the_bf16_mac(a: int, b: int, acc: int, want: int) -> None:
    out = bf16_mac(np.array([a], np.uint16), np.array([b], np.uint16), np.array([acc], np.uint32))
    assert f"{int(out[0]):#010x}" == f"{want:#010x}"
    assert exact_mac(a, b, acc, FORMATS["bf16"]) == want


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 12), st.integers(1, 5), st.integers(1, 5), st.integers(0, 1 << 30))
def test_chain_is_one_rounding_a_row_in_ascending_order(rows: int, columns: int, count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    w = hard_codes(rng, rows * columns, FORMATS["bf16"]).astype(np.uint16).reshape(rows, columns)
    x = hard_codes(rng, rows * count, FORMATS["bf16"]).astype(np.uint16).reshape(rows, count)
    active = rng.random((rows, count)) < 0.8
    out = chain(decode(w, "bf16"), decode(x, "bf16"), active)
    for m in range(columns):
        for n in range(count):
            total = 0
            for k in range(rows):
                if active[k, n]:
                    total = exact_mac(int(x[k, n]), int(w[k, m]), total, FORMATS["bf16"])
            assert int(out[m, n]) == total


class EagerArray:
    """Every PE by itself, in time: waves of 2 cycles a row and 1 a column. Small sizes only."""

    def __init__(self, rows: int, cols: int):
        self.rows, self.cols = rows, cols
        shape = (rows, cols)
        self.shadow = np.zeros(shape, np.float32)
        self.working = np.zeros(shape, np.float32)
        self.moving: dict[tuple[int, int, int], tuple[float, bool, bool]] = {}  # at (cycle, row, column)
        self.weights: dict[tuple[int, int, int], float] = {}
        self.sums: dict[tuple[int, int, int], np.float32] = {}

    def enter(self, cycle: int, x: np.ndarray | None, active: np.ndarray, swap: bool) -> None:
        """A moving beat at the port."""
        for r in range(self.rows):
            if x is not None:
                self.moving[cycle + 2 * r, r, 0] = (x[r], bool(active[r]), swap)

    def load(self, cycle: int, w: np.ndarray, active: np.ndarray) -> None:
        """A stationary beat at the port."""
        for r in np.flatnonzero(active):
            self.weights[cycle + 2 * int(r), int(r), 0] = w[r]

    def step(self, cycle: int) -> None:
        """All PEs, one cycle."""
        for r in range(self.rows):
            for c in range(self.cols):
                here = (cycle, r, c)
                if here in self.moving:
                    x, use, swap = self.moving[here]
                    self.moving[cycle + 1, r, c + 1] = (x, use, swap)
                    if swap:
                        self.working[r, c] = self.shadow[r, c]
                    north = self.sums.get((cycle, r, c), np.float32(0))
                    south = fused(np.float32(x), self.working[r, c], north) if use else north
                    self.sums[cycle + 2, r + 1, c] = np.float32(south)
                if here in self.weights:
                    self.weights[cycle + 1, r, c + 1] = float(self.shadow[r, c])
                    self.shadow[r, c] = self.weights[here]


def test_beats_act_as_if_on_all_elements_at_once() -> None:
    """The golden array has no time in it; an array of PEs with skewed waves gives the same sums."""
    rng = np.random.default_rng(4)
    rows, cols, cycles = 5, 4, 120
    eager = EagerArray(rows, cols)
    state = TensorState(rows, cols)
    wanted: dict[int, np.ndarray] = {}
    for t in range(cycles):
        if rng.random() < 0.8:
            x = rng.standard_normal(rows).astype(np.float32)
            active = rng.random(rows) < 0.8
            swap = bool(rng.random() < 0.2)
            eager.enter(t, x, active, swap)
            if swap:
                state.swap()
            wanted[t] = state.multiply(x[:, None], active)[:, 0]
        if rng.random() < 0.6:
            w = rng.standard_normal(rows).astype(np.float32)
            active = rng.random(rows) < 0.8
            eager.load(t, w, active)
            state.push(w, active)
    for t in range(cycles + 2 * rows + cols):
        eager.step(t)
    for t, sums in wanted.items():
        seen = [eager.sums[t + 2 * rows + c, rows, c] for c in range(cols)]
        assert np.array_equal(canonical(np.array(seen, np.float32)), sums), f"beat of cycle {t}"


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 8), st.integers(1, 8), st.integers(0, 1 << 30))
def test_load_is_its_beats_last_column_first(rows: int, width: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    start = int(rng.integers(0, 9 - rows))
    one, other = TensorState(8, 8), TensorState(8, 8)
    for state in (one, other):
        state.shadow["value"] = np.arange(64).reshape(8, 8)
    columns = rng.standard_normal((rows, width)).astype(np.float32)
    one.load(columns, start)
    active = np.zeros(8, np.bool_)
    active[start : start + rows] = True
    for c in reversed(range(width)):
        beat = np.zeros(8, np.float32)
        beat[active] = columns[:, c]
        other.push(beat, active)
    assert np.array_equal(one.shadow, other.shadow)


def test_matmul_swaps_only_after_a_load() -> None:
    state = TensorState(4, 4)
    ones = np.ones((4, 4), np.float32)
    state.load(ones, 0)
    assert (state.matmul(ones, 0) == np.float32(4).view(np.uint32)).all()
    state.shadow["value"] = 7
    assert (state.matmul(ones, 0) == np.float32(4).view(np.uint32)).all()
    state.load(2 * ones[:2], 2)
    assert (state.matmul(ones, 0) == np.float32(2 * 7 + 2 * 2).view(np.uint32)).all()
    with pytest.raises(ValueError, match="rows 3 to 4"):
        state.matmul(ones[:2], 3)
