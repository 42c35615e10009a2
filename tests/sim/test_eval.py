"""`plexus eval`: arrays through Verilated units, held against NumPy; wrong arrays get a sentence."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from rtl.contract.activation_tables import FIRST_TABLE_FUNCTION, table
from rtl.contract.config import named
from rtl.contract.isa import REDUCTIONS, AluOp, Function
from sim.errors import PlexusError
from sim.run.evaluate import evaluate, read_arrays, write_arrays
from verif.accuracy.dense import inputs
from verif.agents.flits import DAMAGE, damaged
from verif.golden.activation import direct, pre, through_table
from verif.golden.alu import reduce
from verif.golden.exp import exp
from verif.golden.flit import decode, encode

TINY = named("tiny")
CODES = np.arange(1 << 16, dtype=np.uint16)


def same_or_nan(got: np.ndarray, want: np.ndarray) -> bool:
    nan = np.isnan(want)
    return bool(np.array_equal(got[~nan], want.view(np.uint32)[~nan]) and (got[nan] == 0x7FC00000).all())


def test_fp32_add_equals_numpy() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 1 << 32, (2, 20_000), dtype=np.uint32)
    out = evaluate("fp32_add", {"a": a, "b": b}, TINY)["out"]
    with np.errstate(all="ignore"):
        assert same_or_nan(out, a.view(np.float32) + b.view(np.float32))


@pytest.mark.parametrize(("unit", "kind"), [("bf16_mac", ml_dtypes.bfloat16), ("fp16_mac", np.float16)])
def test_mac_equals_double(unit: str, kind: type) -> None:
    rng = np.random.default_rng(2)
    a, b = rng.integers(0, 1 << 16, (2, 20_000), dtype=np.uint16)
    acc = rng.integers(0, 1 << 32, 20_000, dtype=np.uint32)
    out = evaluate(unit, {"a": a, "b": b, "acc": acc}, TINY)["out"]
    with np.errstate(all="ignore"):
        product = a.view(kind).astype(np.float64) * b.view(kind).astype(np.float64)
        # one addition in double, then one rounding: exact, for 53 >= 2 * 24 + 2
        assert same_or_nan(out, (product + acc.view(np.float32).astype(np.float64)).astype(np.float32))


def test_length_one_broadcasts() -> None:
    one = np.array([0x3F80], np.uint16)
    out = evaluate("bf16_mac", {"a": CODES, "b": one, "acc": np.zeros(1, np.uint32)}, TINY)["out"]
    with np.errstate(all="ignore"):
        assert same_or_nan(out, CODES.view(ml_dtypes.bfloat16).astype(np.float32) + np.float32(0))


def test_convert_takes_texts_and_types_follow() -> None:
    given = {"x": CODES, "src": np.array("bf16"), "dst": np.array("fp16")}
    out = evaluate("convert", given, TINY)["out"]
    assert out.dtype == np.uint16
    with np.errstate(all="ignore"):
        want = CODES.view(ml_dtypes.bfloat16).astype(np.float32).astype(np.float16)
    finite = ~np.isnan(want)
    assert np.array_equal(out[finite], want.view(np.uint16)[finite])


def test_convert_saturates_where_it_is_asked_to() -> None:
    x = np.array([70000.0, -70000.0, np.inf, -np.inf, np.nan, 1.0], np.float32).view(np.uint32)
    given = {"x": x, "src": np.array("fp32"), "dst": np.array("fp16")}
    held = evaluate("convert", {**given, "saturate": np.array([1], np.uint8)}, TINY)["out"]
    assert held.tolist() == [0x7BFF, 0xFBFF, 0x7BFF, 0xFBFF, 0x7E00, 0x3C00]
    mixed = evaluate("convert", {**given, "saturate": np.array([0, 1, 0, 1, 0, 1], np.uint8)}, TINY)["out"]
    assert mixed.tolist() == [0x7C00, 0xFBFF, 0x7C00, 0xFBFF, 0x7E00, 0x3C00]
    assert evaluate("convert", given, TINY)["out"].tolist() == [0x7C00, 0xFC00, 0x7C00, 0xFC00, 0x7E00, 0x3C00]
    with pytest.raises(PlexusError, match="saturate must hold values up to 1, not 2"):
        evaluate("convert", {**given, "saturate": np.array([2], np.uint8)}, TINY)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"a": None}, "needs an array 'a'"),
        ({"A": CODES}, "no 'A'"),
        ({"a": CODES.astype(np.float32)}, "uint16, not float32"),
        ({"a": CODES.reshape(2, -1)}, "shape (n,)"),
        ({"a": CODES[:7]}, "7 elements"),
        ({"a": CODES[:0]}, "no elements"),
    ],
)
def test_wrong_arrays_get_a_sentence(change: dict[str, np.ndarray | None], says: str) -> None:
    good = {"a": CODES, "b": CODES, "acc": np.zeros(1, np.uint32)}
    given = {k: v for k, v in {**good, **change}.items() if v is not None}
    with pytest.raises(PlexusError, match=None) as error:
        evaluate("bf16_mac", given, TINY)
    assert says in str(error.value)


@pytest.mark.parametrize("src", [np.array("fp33"), np.array(["fp32"]), np.array(3)])
def test_wrong_texts_get_a_sentence(src: np.ndarray) -> None:
    with pytest.raises(PlexusError, match="src must be one"):
        evaluate("convert", {"x": CODES, "src": src, "dst": np.array("fp16")}, TINY)


def test_unknown_unit() -> None:
    with pytest.raises(PlexusError, match="there is no unit 'mac'; there are bf16_mac"):
        evaluate("mac", {}, TINY)


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    write_arrays(path, {"x": CODES, "src": np.array("fp32")})
    back = read_arrays(path)
    assert np.array_equal(back["x"], CODES)
    assert str(back["src"]) == "fp32"
    assert [p.name for p in tmp_path.iterdir()] == ["x.npz"]
    with pytest.raises(PlexusError, match="there is no file"):
        read_arrays(tmp_path / "y.npz")
    (tmp_path / "z.npz").write_text("not an archive")
    with pytest.raises(PlexusError, match="not an .npz archive"):
        read_arrays(tmp_path / "z.npz")
    np.save(tmp_path / "one.npy", CODES)
    with pytest.raises(PlexusError, match="one array"):
        read_arrays(tmp_path / "one.npy")


@pytest.mark.parametrize("func", [f.name.lower() for f in Function])
def test_activation_is_the_golden_function(func: str) -> None:
    """Every BF16 number, random FP32 codes and some of every binade, with the defaults of scale, bias and slope."""
    wild = np.random.default_rng(5).integers(0, 1 << 32, 50_000, dtype=np.uint32)
    x = np.concatenate([CODES.astype(np.uint32) << np.uint32(16), wild, inputs(30_000, 5)])
    slope = np.array([0x3E800000 if func == "prelu" else 0x3C23D70A], np.uint32)
    out = evaluate("activation", {"x": x, "func": np.array(func)}, TINY)["out"]
    tabled = Function[func.upper()] >= FIRST_TABLE_FUNCTION
    assert np.array_equal(out, through_table(x, table(func)) if tabled else direct(x, func, slope))


def test_activation_takes_scale_and_bias() -> None:
    x, scale, bias = np.random.default_rng(6).normal(size=(3, 5000)).astype(np.float32)
    given = {"x": x.view(np.uint32), "scale": scale.view(np.uint32), "bias": bias.view(np.uint32)}
    out = evaluate("activation", {**given, "func": np.array("gelu_erf")}, TINY)["out"]
    assert np.array_equal(out, through_table(pre(*given.values()), table("gelu")))


def test_exp_is_the_golden_function() -> None:
    rng = np.random.default_rng(7)
    x, m = rng.uniform(-110, 95, (2, 50_000)).astype(np.float32).view(np.uint32)
    m = np.where(rng.random(50_000) < 0.5, np.uint32(0), m).astype(np.uint32)
    assert np.array_equal(evaluate("exp", {"x": x, "m": m}, TINY)["out"], exp(x, m))


def test_exp_of_every_bf16_number_and_of_any_codes() -> None:
    zero = np.zeros(1, np.uint32)
    x = CODES.astype(np.uint32) << np.uint32(16)
    assert np.array_equal(evaluate("exp", {"x": x, "m": zero}, TINY)["out"], exp(x, zero))
    a, b = np.random.default_rng(8).integers(0, 1 << 32, (2, 1_000_000), dtype=np.uint32)
    assert np.array_equal(evaluate("exp", {"x": a, "m": b}, TINY)["out"], exp(a, b))


@pytest.mark.parametrize("op", REDUCTIONS)
@pytest.mark.parametrize("length", [1, 5, 8, 100])
def test_reduce_is_the_golden_reduction(op: AluOp, length: int) -> None:
    rng = np.random.default_rng(length)
    x = rng.normal(size=(300, length)).astype(np.float32).view(np.uint32)
    x[:50] = rng.integers(0, 1 << 32, (50, length), dtype=np.uint32)
    out = evaluate("reduce", {"x": x, "op": np.array(op.name.lower())}, TINY)["out"]
    assert np.array_equal(out, reduce(x, op))


def test_reduce_refuses_rows_without_elements() -> None:
    for shape in ((3,), (3, 0), (0, 3), (2, 2, 2)):
        with pytest.raises(PlexusError, match="x "):
            evaluate("reduce", {"x": np.zeros(shape, np.uint32), "op": np.array("add")}, TINY)


def test_flit_codec_is_the_golden_code() -> None:
    rng = np.random.default_rng(9)
    info = rng.integers(0, 256, (20_000, 242), np.uint8)
    flits = evaluate("flit_encode", {"info": info}, TINY)["flit"]
    assert np.array_equal(flits, encode(info))
    kinds = [DAMAGE[n] for n in rng.integers(0, len(DAMAGE), len(flits))]
    bad = np.stack([damaged(rng, flit, kind) for flit, kind in zip(flits, kinds)])
    out, want = evaluate("flit_decode", {"flit": bad}, TINY), decode(bad)
    assert out["valid"].dtype == out["corrected"].dtype == np.uint8
    assert np.array_equal(out["valid"], want.valid) and np.array_equal(out["corrected"], want.corrected)
    assert np.array_equal(out["flit"], want.flits)
    good = out["valid"] == 1
    assert 0.3 < good.mean() < 0.9
    assert np.array_equal(out["flit"][good], encode(out["flit"][good, :242]))


def test_flit_decode_repairs_every_single_byte() -> None:
    byte, error = np.divmod(np.arange(256 * 255), 255)
    good = encode(np.random.default_rng(10).integers(0, 256, (1, 242), np.uint8))
    bad = np.repeat(good, len(byte), axis=0)
    bad[np.arange(len(byte)), byte] ^= (error + 1).astype(np.uint8)
    out = evaluate("flit_decode", {"flit": bad}, TINY)
    assert out["valid"].all() and (out["corrected"] == 1).all() and (out["flit"] == good).all()


@pytest.mark.parametrize(
    ("unit", "name", "array", "says"),
    [
        ("flit_encode", "info", np.zeros((3, 256), np.uint8), "info must have the shape (n, 242), not (3, 256)"),
        ("flit_encode", "info", np.zeros(242, np.uint8), "info must have the shape (n, 242), not (242,)"),
        ("flit_encode", "info", np.zeros((3, 242), np.int64), "info must hold bit patterns as uint8, not int64"),
        ("flit_encode", "info", np.zeros((0, 242), np.uint8), "info has no elements"),
        ("flit_encode", "flit", np.zeros((3, 256), np.uint8), "unit flit_encode takes info, and no 'flit'"),
        ("flit_decode", "flit", np.zeros((3, 242), np.uint8), "flit must have the shape (n, 256), not (3, 242)"),
    ],
)
def test_wrong_flits_get_a_sentence(unit: str, name: str, array: np.ndarray, says: str) -> None:
    with pytest.raises(PlexusError) as error:
        evaluate(unit, {name: array}, TINY)
    assert says in str(error.value) and "\n" not in str(error.value)
