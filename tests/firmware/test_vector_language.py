"""k.vector on the golden machine, held against NumPy, ml_dtypes and plain loops; what the language refuses."""

import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from firmware.kernel import Kernel, KernelError
from firmware.numbers import decode, encode
from verif.checks.lab import TINY, Lab, P

F32 = np.float32
TYPES: dict[str, Any] = {
    "fp32": np.float32,
    "bf16": ml_dtypes.bfloat16,
    "fp16": np.float16,
    "e4m3fn": ml_dtypes.float8_e4m3fn,
    "e4m3": ml_dtypes.float8_e4m3,
    "e5m2": ml_dtypes.float8_e5m2,
    **{f"{u}int{n}": np.dtype(f"{u}int{n}").type for u in ("", "u") for n in (8, 16, 32)},
}
FLOATS = ("fp32", "bf16", "fp16", "e4m3fn", "e4m3", "e5m2")


def normal(columns: int, seed: int = 0, scale: float = 1.0) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal((P, columns)) * scale).astype(F32)


def bits(values: np.ndarray) -> np.ndarray:
    return np.asarray(values, F32).view(np.uint32)


def put(lab: Lab, name: str, values: np.ndarray) -> Any:
    return lab.put(name, "fp32", bits(values))[:, :]


def number(found: np.ndarray) -> np.ndarray:
    return found.view(F32)


def rounded_sum(values: np.ndarray) -> np.ndarray:
    """Sums along the last axis in the machine's order, with one NumPy addition at a time."""
    parts = [np.zeros(values.shape[:-1], F32) for _ in range(8)]
    for i in range(values.shape[-1]):
        parts[i % 8] = parts[i % 8] + values[..., i]
    a = [parts[i] + parts[i + 1] for i in (0, 2, 4, 6)]
    return (a[0] + a[1]) + (a[2] + a[3])


@pytest.mark.parametrize("src", TYPES)
@pytest.mark.parametrize("dst", FLOATS)
def test_copy_converts_like_ml_dtypes(src: str, dst: str):
    rng = np.random.default_rng(1)
    size = np.dtype(TYPES[src]).itemsize
    codes = rng.integers(0, 1 << 8 * size, (P, 64), dtype=np.uint64).astype(f"u{size}")
    lab = Lab()
    x, y = lab.put("x", src, codes), lab.out("y", dst, 64)
    lab.k.vector.copy(y[:, :], x[:, :])
    with np.errstate(all="ignore"):
        values = codes.view(TYPES[src]).astype(F32).astype(TYPES[dst])
    found = lab.run()["y"]
    if src == dst:
        assert np.array_equal(found, codes), "equal formats pass unchanged"
    else:
        same = (found == values.view(found.dtype)) | (np.isnan(values.astype(F32)) & np.isnan(decode(found, dst)))
        assert same.all()


def test_integers_saturate():
    values = np.tile(np.array([[1e30, -1e30, 2.5, 3.5, -0.5, np.nan, np.inf, -300.7]], F32), (P, 1))
    lab = Lab()
    x = put(lab, "x", values)
    expected = {
        "int8": [127, -128, 2, 4, 0, 0, 127, -128],
        "uint8": [255, 0, 2, 4, 0, 0, 255, 0],
        "int16": [32767, -32768, 2, 4, 0, 0, 32767, -301],
        "uint16": [65535, 0, 2, 4, 0, 0, 65535, 0],
        "int32": [2**31 - 1, -(2**31), 2, 4, 0, 0, 2**31 - 1, -301],
        "uint32": [2**32 - 1, 0, 2, 4, 0, 0, 2**32 - 1, 0],
    }
    for dtype in expected:
        lab.k.vector.copy(lab.out(dtype, dtype, 8)[:, :], x)
    for dtype, found in lab.run().items():
        assert found[3].view(dtype).tolist() == expected[dtype]


def test_psum_is_a_source_and_a_destination():
    x = normal(32, scale=100)
    lab = Lab()
    sums = lab.k.psum("sums", partitions=8, columns=64)
    lab.k.vector.copy(sums[:, ::2], put(lab, "x", x))
    lab.k.vector.tensor_scalar(lab.out("y", "bf16", 32)[:, :], sums[:, ::2], "multiply", 2.0)
    assert np.array_equal(lab.run()["y"], encode(2 * x, "bf16"))


OPS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "max": np.maximum,
    "min": np.minimum,
    "absmax": lambda a, b: np.maximum(np.abs(a), np.abs(b)),
    "absmin": lambda a, b: np.minimum(np.abs(a), np.abs(b)),
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "and": lambda a, b: (a != 0) & (b != 0),
    "or": lambda a, b: (a != 0) | (b != 0),
    "xor": lambda a, b: (a != 0) ^ (b != 0),
}


@pytest.mark.parametrize("op", OPS)
def test_tensor_tensor(op: str):
    x, y = (np.round(normal(40, seed) * 2) / 2 + F32(0) for seed in (1, 2))  # many equal, no -0
    lab = Lab()
    xt, yt = put(lab, "x", x), put(lab, "y", y)
    lab.k.vector.tensor_tensor(lab.out("straight", "fp32", 40)[:, :], xt, op, yt)
    lab.k.vector.tensor_tensor(lab.out("reverse", "bf16", 40)[:, :], xt, op, yt, reverse=True)
    found = lab.run()
    assert np.array_equal(number(found["straight"]), OPS[op](x, y).astype(F32))
    assert np.array_equal(found["reverse"], encode(OPS[op](y, x).astype(F32), "bf16"))


def test_tensor_scalar_and_scalar_tensor_tensor():
    x, y, m, s = normal(24, 1), normal(24, 2), normal(1, 3), normal(1, 4)
    lab = Lab()
    v = lab.k.vector
    xt, yt, mt, st = put(lab, "x", x), put(lab, "y", y), lab.column("m", m), lab.column("s", s)
    outs = {name: lab.out(name, "fp32", 24)[:, :] for name in "abcdef"}
    v.tensor_scalar(outs["a"], xt, "subtract", mt, "multiply", st)
    v.tensor_scalar(outs["b"], xt, "subtract", 3.25, reverse0=True)
    v.tensor_scalar(outs["c"], xt, "square", op1="subtract", b=1.0, reverse1=True)
    v.scalar_tensor_tensor(outs["d"], xt, "multiply", st, "add", yt)
    v.scalar_tensor_tensor(outs["e"], xt, "abs", None, "subtract", yt, reverse1=True)
    v.tensor_scalar(outs["f"], xt, "relu")
    found = {name: number(b) for name, b in lab.run().items()}
    assert np.array_equal(found["a"], (x - m) * s)
    assert np.array_equal(found["b"], F32(3.25) - x)
    assert np.array_equal(found["c"], F32(1) - x * x)
    assert np.array_equal(found["d"], x * s + y)
    assert np.array_equal(found["e"], y - np.abs(x))
    assert np.array_equal(found["f"], np.maximum(x, 0))


def test_bit_operators():
    rng = np.random.default_rng(3)
    a, b = rng.integers(-(1 << 15), 1 << 15, (2, P, 16))
    lab = Lab()
    v = lab.k.vector
    at, bt = lab.put("a", "int16", a.astype(np.int16).view(np.uint16)), lab.put("b", "uint16", b & 0xFFFF)
    outs = {name: lab.out(name, "uint16", 16)[:, :] for name in ("and", "xor", "shift", "not", "left")}
    v.tensor_tensor(outs["and"], at[:, :], "bit_and", bt[:, :])
    v.tensor_scalar(outs["xor"], at[:, :], "bit_xor", 0xABC, "bit_or", 3)
    v.tensor_scalar(outs["shift"], at[:, :], "shift_right", 4)
    v.tensor_scalar(outs["not"], bt[:, :], "bit_not")
    v.tensor_scalar(outs["left"], bt[:, :], "shift_left", 35)
    found = lab.run()
    assert np.array_equal(found["and"], (a & b) & 0xFFFF)
    assert np.array_equal(found["xor"], ((a ^ 0xABC) | 3) & 0xFFFF)
    assert np.array_equal(found["shift"], (a & 0xFFFFFFFF) >> 4 & 0xFFFF), (
        "signed elements fill 32 bits with their sign"
    )
    assert np.array_equal(found["not"], ~b & 0xFFFF)
    assert np.array_equal(found["left"], b << 3 & 0xFFFF), "shifts go by 5 bits of the second operand"


@pytest.mark.parametrize("axes", [1, 2, 3, 4])
def test_reduce_axes(axes: int):
    x = normal(2 * 3 * 5 * 4, 5)
    shaped = x.reshape(P, 2, 3, 5, 4)
    outer = int(np.prod(shaped.shape[1 : 5 - axes]))
    flat = shaped.reshape(P, outer, -1)
    lab = Lab()
    view = put(lab, "x", x).split(0, 60).split(1, 20).split(2, 4)
    ops = {"add": rounded_sum, "max": lambda v: v.max(-1), "min": lambda v: v.min(-1)}
    ops |= {"absmax": lambda v: np.abs(v).max(-1), "absmin": lambda v: np.abs(v).min(-1)}
    for op in ops:
        lab.k.vector.reduce(lab.out(op, "fp32", outer)[:, :], view, op, axes=axes)
        lab.k.vector.reduce(lab.out(f"-{op}", "fp32", outer)[:, :], view, op, axes=axes, negate=True)
    found = lab.run()
    for op, truth in ops.items():
        assert np.array_equal(number(found[op]), truth(flat)), op
        assert np.array_equal(number(found[f"-{op}"]), -truth(flat)), op


def test_scan_is_sequential():
    x, y = normal(30, 6), normal(30, 7)
    lab = Lab()
    xt, yt = put(lab, "x", x), put(lab, "y", y)
    first = normal(1, 8)
    lab.k.vector.scan(lab.out("a", "fp32", 30)[:, :], xt, "multiply", "add", yt, initial=lab.column("first", first))
    lab.k.vector.scan(lab.out("b", "fp32", 30)[:, :], xt, "max", "subtract", yt, reverse1=True)
    found = lab.run()
    running, highest = first[:, 0], np.zeros(P, F32)
    for i in range(30):
        running = running * x[:, i] + y[:, i]
        highest = y[:, i] - np.maximum(highest, x[:, i])
        assert np.array_equal(number(found["a"])[:, i], running)
        assert np.array_equal(number(found["b"])[:, i], highest)


def test_selections():
    rng = np.random.default_rng(9)
    x, old, mask = normal(33, 1), normal(33, 2), rng.integers(0, 2, (P, 33))
    lab = Lab()
    v = lab.k.vector
    xt, mt = put(lab, "x", x), lab.put("mask", "uint8", mask)[:, :]
    zeros = np.where(mask, np.where(x > 0, F32(np.nan), x), F32(-0.0))  # -0 is false, NaN true
    v.select(lab.out("select", "fp32", 33)[:, :], mt, xt, lab.column("a", np.arange(P)))
    v.select(lab.out("floats", "fp32", 33)[:, :], put(lab, "zeros", zeros), xt, -1.0)
    target = lab.keep(lab.put("kept", "bf16", encode(old, "bf16")))
    v.copy_predicated(target[:, :], mt, xt)
    found = lab.run()
    assert np.array_equal(number(found["select"]), np.where(mask, x, np.arange(P, dtype=F32)[:, None]))
    assert np.array_equal(number(found["floats"]), np.where(mask, x, F32(-1)))
    assert np.array_equal(found["kept"], np.where(mask, encode(x, "bf16"), encode(old, "bf16")))


def test_range_select():
    x = normal(40, 1)
    hi = np.arange(P) * 4 + 1
    lab = Lab()
    v = lab.k.vector
    store = lab.out("max", "fp32", 1)[:, :]
    xt, bound = put(lab, "x", x), lab.column("hi", hi)
    v.range_select(
        lab.out("a", "fp32", 40)[:, :], xt, "ge", 3.0, "lt", bound, start=2, reduce="reset_reduce", store=store
    )
    v.range_select(lab.out("b", "bf16", 40)[:, :], xt, "ge", 0.0, "lt", 20.0, reduce="reduce")
    v.range_select(
        lab.out("c", "bf16", 40)[:, :], xt, "gt", 1e9, "le", 0.0, reduce="reduce", store=lab.out("m2", "fp32", 1)[:, :]
    )
    found = lab.run()
    at = np.arange(40) + 2
    expected = np.where((at >= 3) & (at < hi[:, None]), x, np.finfo(F32).min)
    assert np.array_equal(number(found["a"]), expected)
    assert np.array_equal(number(found["max"]), expected.max(1, keepdims=True))
    best = np.maximum(expected.max(1), x[:, :20].max(1))
    assert np.array_equal(number(found["m2"])[:, 0], best), "the accumulator lasts from instruction to instruction"
    assert (found["c"] == 0xFF80).all(), "bf16 makes an infinity of the least FP32 number"


def test_exp_and_its_accumulator():
    x = normal(50, 1, 3)
    m, before = x.max(1), np.abs(normal(1, 2))
    lab = Lab()
    v = lab.k.vector
    xt, mt = put(lab, "x", x), lab.column("m", m)
    v.exp(lab.out("e", "fp32", 50)[:, :], xt, mt, reduce="reset_reduce", store=lab.out("s", "fp32", 1)[:, :])
    v.exp(lab.out("h", "bf16", 20)[:, :], xt[:, :20], mt, reduce="reduce", store=lab.out("s2", "fp32", 1)[:, :])
    start = lab.column("before", before)
    v.exp(
        lab.out("t", "fp32", 50)[:, :], xt, mt, reduce="load_reduce", init=start, store=lab.out("s3", "fp32", 1)[:, :]
    )
    v.exp(lab.out("u", "e5m2", 50)[:, :], xt)
    found = {name: number(b) if b.dtype == np.uint32 else b for name, b in lab.run().items()}
    truth = np.exp((x - m[:, None]).astype(np.float64))
    assert np.abs(found["e"] / truth - 1).max() < 2**-23
    assert np.array_equal(found["s"][:, 0], rounded_sum(found["e"]))
    part = rounded_sum(found["e"][:, :20])
    assert np.array_equal(found["s2"][:, 0], found["s"][:, 0] + part), "the sum is of values before rounding"
    assert np.array_equal(found["s3"], before + found["s"])
    assert np.array_equal(found["h"], encode(found["e"][:, :20], "bf16"))


def test_memset_and_reciprocal():
    x = normal(16, 1)
    lab = Lab()
    lab.k.vector.memset(lab.out("a", "bf16", 10)[:, ::3], -1.5)
    lab.k.vector.memset(lab.out("b", "int8", 5)[:, :], lab.column("c", np.arange(P) - 2.5))
    lab.k.vector.memset(lab.out("t", "tf32", 4)[:, :], 1 + 2.0**-11)
    lab.k.vector.reciprocal(lab.out("r", "fp32", 16)[:, :], put(lab, "x", x))
    found = lab.run()
    assert found["a"][0].tolist() == [0xBFC0, 0xFFFF, 0xFFFF] * 3 + [0xBFC0]
    assert found["b"].view(np.int8)[:, 0].tolist() == [-2, -2, 0, 0, 2, 2, 4, 4]
    assert (found["t"] == 0x3F800000).all()
    assert np.array_equal(number(found["r"]), F32(1) / x)


def test_statistics():
    x = normal(64, 1, 3) + F32(100)
    lab = Lab()
    v = lab.k.vector
    xt, triples = put(lab, "x", x), lab.out("t", "fp32", 12)[:, :]
    v.bn_stats(triples[:, :6], xt[:, :40])
    v.bn_stats(triples[:, 6:], xt[:, 40:])
    v.bn_aggr(lab.out("y", "fp32", 2)[:, :], triples)
    found = {name: number(b) for name, b in lab.run().items()}
    even, odd = x[:, 0:40:2].astype(np.float64), x[:, 1:40:2].astype(np.float64)
    truth = [20 + 0 * even[:, 0], even.mean(1), even.var(1) * 20, 20 + 0 * odd[:, 0], odd.mean(1), odd.var(1) * 20]
    assert np.allclose(found["t"][:, :6], np.stack(truth, axis=1), rtol=1e-5)
    exact = x.astype(np.float64)
    assert np.allclose(found["y"], np.stack((exact.mean(1), exact.var(1)), axis=1), rtol=1e-5)


def test_the_eight_largest():
    rng = np.random.default_rng(1)
    x = np.stack([rng.permutation(40) for _ in range(P)]).astype(F32)
    lab = Lab()
    v = lab.k.vector
    xt, top = put(lab, "x", x), lab.out("top", "fp32", 8)[:, :]
    v.max8(top, xt)
    v.find_index8(lab.out("at", "uint16", 8)[:, :], xt, top)
    v.find_index8(lab.out("none", "uint16", 8)[:, :], xt[:, :8], put(lab, "absent", np.full((P, 8), -1.0)))
    v.match_replace8(lab.out("rest", "fp32", 40)[:, :], xt, top, -1.0)
    found = lab.run()
    assert (number(found["top"]) == np.arange(39, 31, -1)).all()
    assert np.array_equal(np.take_along_axis(x, found["at"].astype(np.int64), 1), number(found["top"]))
    assert (found["none"] == 0xFFFF).all()
    assert np.array_equal(number(found["rest"]), np.where(x > 31, F32(-1), x))


def test_transpose_and_shuffle():
    codes = np.random.default_rng(2).integers(0, 1 << 16, (P, 16))
    old = np.random.default_rng(3).integers(0, 1 << 16, (P, 16))
    lab = Lab()
    x, kept = lab.put("x", "bf16", codes)[:, :], lab.keep(lab.put("kept", "bf16", old))
    lab.k.vector.transpose(lab.out("t", "bf16", 16)[:, :], x)
    lab.k.vector.shuffle(kept[:, :], x, [3, None, 0, 0, 7, 6, 5, None])
    found = lab.run()
    assert np.array_equal(found["t"], np.concatenate((codes[:, :8].T, codes[:, 8:].T), axis=1))
    expected = codes[[3, 0, 0, 0, 7, 6, 5, 0]]
    expected[[1, 7]] = old[[1, 7]]
    assert np.array_equal(found["kept"], expected)


def test_partitions_move():
    """Operands on other partitions: element p of each goes to partition p of the destination."""
    x, y, c = normal(8, 1), normal(8, 2), np.arange(4)
    lab = Lab()
    low, high = put(lab, "x", x), put(lab, "y", y)
    column = lab.column("c", c, start=4)
    out = lab.out("o", "fp32", 8, partitions=4, start=0)[:, :]
    lab.k.vector.scalar_tensor_tensor(out, high[4:8], "multiply", column, "add", low[0:4])
    assert np.array_equal(number(lab.run()["o"]), y[4:] * c[:, None].astype(F32) + x[:4])


def views(k: Kernel) -> dict[str, Any]:
    shapes = {"x": ("fp32", 64), "h": ("bf16", 64), "c": ("fp32", 1), "i": ("int16", 64), "m": ("uint8", 64)}
    found: dict[str, Any] = {n: k.sbuf(n, partitions=8, columns=c, dtype=d)[:, :] for n, (d, c) in shapes.items()}
    return found | {
        "s": k.psum("s", partitions=8, columns=64)[:, :],
        "e": k.sbuf("e", partitions=8, columns=8, dtype="fp32")[:, :],
    }


REFUSED: list[tuple[str, Callable[[Any, dict[str, Any]], object]]] = [
    (
        "a copy needs the same shape on both sides: h is (8, 64), x is (8, 32)",
        lambda v, t: v.copy(t["h"], t["x"][:, :32]),
    ),
    ("tensor_tensor takes the operators bypass, add,", lambda v, t: v.tensor_tensor(t["x"], t["x"], "plus", t["x"])),
    ("not 'plus'", lambda v, t: v.tensor_tensor(t["x"], t["x"], "plus", t["x"])),
    (
        "tensor_reduce takes at most 131072 elements of a partition, not the 192000 of x",
        lambda v, t: v.reduce(t["c"], t["x"].repeat(3000), "add", axes=2),
    ),
    ("max8 writes to SBUF only, not to s in PSUM", lambda v, t: v.max8(t["s"][:, :8], t["x"])),
    ("transpose writes to SBUF only, not to s in PSUM", lambda v, t: v.transpose(t["s"], t["x"])),
    ("only one source may lie in PSUM", lambda v, t: v.tensor_tensor(t["x"], t["s"], "add", t["s"])),
    ("tensor_scalar with add needs an operand a", lambda v, t: v.tensor_scalar(t["x"], t["x"], "add")),
    ("tensor_scalar with abs takes no operand a", lambda v, t: v.tensor_scalar(t["x"], t["x"], "abs", 1.0)),
    ("with relu has nothing to reverse", lambda v, t: v.tensor_scalar(t["x"], t["x"], "relu", reverse0=True)),
    ("a must be a number or a view of a tile", lambda v, t: v.tensor_scalar(t["x"], t["x"], "add", "one")),
    ("must be one fp32 column of SBUF; x has 64 of fp32", lambda v, t: v.tensor_scalar(t["h"], t["h"], "add", t["x"])),
    (
        "must be one fp32 column of SBUF; s has 1 of fp32 in PSUM",
        lambda v, t: v.tensor_scalar(t["h"], t["h"], "add", t["s"][:, :1]),
    ),
    (
        "is on 4 partitions from 0; it must be on the 8 from 0 of h",
        lambda v, t: v.tensor_scalar(t["h"], t["h"], "add", t["c"][:4]),
    ),
    (
        "bit_and works on bits, so all formats must be integers of one size, not int16, fp32",
        lambda v, t: v.tensor_scalar(t["i"], t["x"], "bit_and", 1),
    ),
    ("bit_and and add do not go together", lambda v, t: v.tensor_scalar(t["i"], t["i"], "bit_and", 1, "add", 1.0)),
    (
        "its constant must be a whole number of 32 bits, not 0.5",
        lambda v, t: v.tensor_scalar(t["i"], t["i"], "bit_or", 0.5),
    ),
    (
        "reduce takes the operators add, max, min, absmax, absmin, not 'multiply'",
        lambda v, t: v.reduce(t["c"], t["x"], "multiply"),
    ),
    (
        "reduce works on 1 to 1 axes of x, which has that many, not 2",
        lambda v, t: v.reduce(t["c"], t["x"], "add", axes=2),
    ),
    (
        "reduce works on 1 to 1 axes of x, which has that many, not 0",
        lambda v, t: v.reduce(t["c"], t["x"], "add", axes=0),
    ),
    (
        "x has 64 elements along axis 1; the index 3:3:1 is not inside",
        lambda v, t: v.reduce(t["c"], t["x"][:, 3:3], "add"),
    ),
    ("gives 8 x 4; c is (8, 1)", lambda v, t: v.reduce(t["c"], t["x"].split(0, 16), "add")),
    (
        "scan takes the operators add, subtract, multiply, max, min, not 'eq'",
        lambda v, t: v.scan(t["x"], t["x"], "eq", "add", t["h"]),
    ),
    (
        "range_select takes the operators eq, ne, gt, ge, lt, le, not 'add'",
        lambda v, t: v.range_select(t["x"], t["x"], "add", 0.0, "lt", 1.0),
    ),
    (
        "no operand left for reduce='load_reduce'",
        lambda v, t: v.range_select(t["x"], t["x"], "ge", 0.0, "lt", 1.0, reduce="load_reduce"),
    ),
    (
        "reduce is None or one of reset_reduce, reduce, load_reduce, not 'sum'",
        lambda v, t: v.exp(t["x"], t["x"], reduce="sum"),
    ),
    ("exp has nothing to store without reduce", lambda v, t: v.exp(t["x"], t["x"], store=t["c"])),
    (
        "exp takes init with reduce='load_reduce' and not without",
        lambda v, t: v.exp(t["x"], t["x"], reduce="load_reduce"),
    ),
    (
        "exp reduces, so h and x must be on the same partitions",
        lambda v, t: v.exp(t["h"][:4], t["x"][4:], reduce="reset_reduce"),
    ),
    (
        "bn_aggr takes triples; x has 64 elements, no multiple of 3",
        lambda v, t: v.bn_aggr(t["e"][:, :2], t["x"]),
    ),
    ("bn_stats needs 8 x 6 elements of c, not (8, 1)", lambda v, t: v.bn_stats(t["c"], t["x"])),
    ("max8 searches 8 to 16384 elements, not the 4 of x", lambda v, t: v.max8(t["e"], t["x"][:, :4])),
    (
        "find_index8 writes uint16 or uint32, not fp32, the format of e",
        lambda v, t: v.find_index8(t["e"], t["x"], t["e"]),
    ),
    ("transpose moves bits: h is bf16, x is fp32; they must be the same", lambda v, t: v.transpose(t["h"], t["x"])),
    ("transpose works on blocks of 8 partitions; x is on 4 from 0", lambda v, t: v.transpose(t["x"][:4], t["x"][:4])),
    (
        "transpose takes a multiple of 8 elements, not the 4 of x",
        lambda v, t: v.transpose(t["x"][:, 8:12], t["x"][:, 8:12]),
    ),
    ("a shuffle's mask has 8 entries, each None or 0 to 7, not [1, 8]", lambda v, t: v.shuffle(t["x"], t["x"], [1, 8])),
    (
        "writes to x, which is repeated; only a source may be",
        lambda v, t: v.copy(t["x"][:, :8].repeat(2), t["h"][:, :16]),
    ),
    (
        "tensor_copy writes elements of x that it reads elsewhere; source and destination must be the same or apart",
        lambda v, t: v.copy(t["x"][:, 1:9], t["x"][:, 0:8]),
    ),
]


@pytest.mark.parametrize(("sentence", "action"), REFUSED)
def test_refused(sentence: str, action: Callable[[Any, dict[str, Any]], object]):
    k = Kernel(TINY, "refused")
    with pytest.raises(KernelError, match=re.escape(sentence)) as error:
        action(k.vector, views(k))
    assert "\n" not in str(error.value)


def test_in_place_and_apart_are_allowed():
    k = Kernel(TINY, "allowed")
    t = views(k)
    k.vector.copy(t["x"], t["x"])
    k.vector.copy(t["x"][:, ::2], t["x"][:, 1::2])  # their boxes meet, their elements do not
    k.vector.reduce(t["x"][:, :1], t["x"], "add")  # written when all is read
    k.vector.tensor_scalar(t["c"], t["c"], "multiply", t["c"])  # columns are read before
