"""k.scalar on the golden machine: functions against mpmath, accumulator, tables; what the language refuses."""

import re
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

from firmware.kernel import Kernel, KernelError
from firmware.numbers import decode, encode
from rtl.contract.activation_tables import table
from rtl.contract.config import named
from rtl.contract.isa import Function, Opcode, Queue
from verif.checks.lab import TINY, Lab, P
from verif.golden.activation import through_table

F32 = np.float32


def values(columns: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((P, columns)).astype(F32) * F32(2)


def put(lab: Lab, name: str, x: np.ndarray) -> Any:
    return lab.put(name, "fp32", x.view(np.uint32))[:, :]


DIRECT: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "copy": lambda x: x,
    "abs": np.abs,
    "square": lambda x: x * x,
    "relu": lambda x: np.maximum(x, 0),
    "prelu": lambda x: np.where(x > 0, x, x * F32(0.25)),
    "leaky_relu": lambda x: np.where(x > 0, x, x * F32(0.01)),
    "sign": np.sign,
}


@pytest.mark.parametrize("name", DIRECT)
def test_functions_without_a_table(name: str):
    x = values(20)
    lab = Lab()
    lab.k.scalar.activation(lab.out("y", "fp32", 20)[:, :], put(lab, "x", x), name)
    assert np.array_equal(lab.run()["y"].view(F32), DIRECT[name](x))


TRUTH: dict[str, Callable[[Any], Any]] = {
    "exp": mpmath.exp,
    "tanh": mpmath.tanh,
    "gelu": lambda x: x * (1 + mpmath.erf(x / mpmath.sqrt(2))) / 2,
    "silu": lambda x: x / (1 + mpmath.exp(-x)),
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    "sin": mpmath.sin,
}


@pytest.mark.parametrize("name", TRUTH)
def test_functions_from_a_table(name: str):
    x = np.abs(values(6)) if name == "rsqrt" else np.clip(values(6), -3, 3)
    lab = Lab()
    lab.k.scalar.load_table([name])
    lab.k.scalar.activation(lab.out("y", "fp32", 6)[:, :], put(lab, "x", x), name)
    truth = np.array([[float(TRUTH[name](mpmath.mpf(float(v)))) for v in row] for row in x])
    assert np.abs(lab.run()["y"].view(F32) / truth - 1).max() < 2**-12


def test_operators_before_the_function():
    x, s, b = values(12), values(1, 1), values(1, 2)
    lab = Lab()
    xt, st, bt = put(lab, "x", x), lab.column("s", s), lab.column("b", b)
    a = lab.k.scalar.activation
    a(lab.out("both", "fp32", 12)[:, :], xt, "copy", scale=st, bias=bt)
    a(lab.out("minus", "fp32", 12)[:, :], xt, "abs", scale=3.0, bias=bt, ops=("multiply", "subtract"), reverse1=True)
    a(lab.out("only", "bf16", 12)[:, :], xt, "copy", scale=bt, ops=("subtract", "bypass"), reverse0=True)
    a(lab.out("bias", "fp32", 12)[:, :], xt, "square", bias=bt)
    a(lab.out("slope", "fp32", 12)[:, :], xt, "prelu", scale=st, slope=-2.0)
    found = {name: bits if bits.dtype == np.uint16 else bits.view(F32) for name, bits in lab.run().items()}
    assert np.array_equal(found["both"], x * s + b)
    assert np.array_equal(found["minus"], np.abs(b - x * F32(3)))
    assert np.array_equal(found["only"], encode(b - x, "bf16"))
    assert np.array_equal(found["bias"], (x + b) * (x + b))
    scaled = x * s
    assert np.array_equal(found["slope"], np.where(scaled > 0, scaled, scaled * F32(-2)))


def test_what_is_not_asked_for_changes_nothing():
    lab = Lab()
    lab.k.scalar.copy(lab.out("y", "bf16", 2)[:, :], put(lab, "x", np.tile(np.array([[-0.0, 1.0]], F32), (P, 1))))
    assert lab.run()["y"][0].tolist() == [0x8000, 0x3F80]


def test_the_accumulator():
    x = values(30)
    lab = Lab()
    a = lab.k.scalar.activation
    xt = put(lab, "x", x)
    y = lab.out("y", "fp32", 30)[:, :]
    stores = {name: lab.out(name, "fp32", 1)[:, :] for name in ("sum", "both", "max", "load")}
    a(y, xt, "square", reduce="reset_reduce", store=stores["sum"])
    a(y, xt, "copy", reduce="reduce", store=stores["both"])
    a(y, xt, "copy", reduce="reset_reduce", reduce_op="absmax", store=stores["max"])
    a(y, xt, "copy", scale=2.0, reduce="load_reduce", reduce_op="max", init=100.0, store=stores["load"])
    found = {name: bits.view(F32) for name, bits in lab.run().items()}

    def total(v: np.ndarray) -> np.ndarray:
        parts = [np.add.accumulate(v[:, i::8], axis=1, dtype=F32)[:, -1] for i in range(8)]
        a, b, c, d = (parts[i] + parts[i + 1] for i in (0, 2, 4, 6))
        return (a + b) + (c + d)

    assert np.array_equal(found["sum"][:, 0], total(x * x))
    assert np.array_equal(found["both"][:, 0], total(x * x) + total(x))
    assert np.array_equal(found["max"][:, 0], np.abs(x).max(1))
    assert (found["load"] == 100).all()


def test_engines_have_accumulators_of_their_own():
    x = values(16)
    lab = Lab()
    xt, y = put(lab, "x", x), lab.out("y", "fp32", 16)[:, :]
    lab.k.scalar.activation(y, xt, "copy", reduce="reset_reduce")
    lab.k.vector.exp(y, xt, reduce="reset_reduce")
    lab.k.scalar.activation(y, xt, "relu", reduce="reduce", reduce_op="max", store=lab.out("s", "fp32", 1)[:, :])
    alone = Lab()
    xt, y = put(alone, "x", x), alone.out("y", "fp32", 16)[:, :]
    alone.k.scalar.activation(y, xt, "copy", reduce="reset_reduce")
    alone.k.scalar.activation(y, xt, "relu", reduce="reduce", reduce_op="max", store=alone.out("s", "fp32", 1)[:, :])
    assert np.array_equal(lab.run()["s"], alone.run()["s"])


def test_tables_are_loaded_once_and_share_their_tile():
    k = Kernel(named("full"), "tables")
    t = k.sbuf("t", partitions=128, columns=8, dtype="bf16")[:, :]
    k.scalar.load_table(["gelu", "exp"])
    k.scalar.activation(t, t, "gelu")
    k.scalar.load_table(["exp"])  # is there
    k.scalar.load_table([Function.TANH])
    k.scalar.load_table(["exp", "gelu"])  # the same image again
    k.scalar.activation(t, t, "exp")
    free = k.sbuf_free()
    program = k.program()
    loads = [i for i in program.queues[Queue.SCALAR] if i.opcode == Opcode.LOAD_TABLE]
    gelu_exp = 1 << Function.GELU | 1 << Function.EXP
    assert [i.imm0 for i in loads] == [gelu_exp, 1 << Function.TANH, gelu_exp]
    assert sum(1 for name in program.tensors if name.startswith("functions")) == 2
    assert named("full").sbuf.partition_bytes - free < 4096
    loading = [i for i in program.queues[Queue.SYNC] if i.opcode == Opcode.DMA_TRIGGER]
    assert all(any(w.semaphore == Queue.SCALAR for w in i.waits) for i in loading[1:]), "the table before is read first"


def test_all_functions_in_pieces():
    """Where SBUF is small a table passes through it in pieces; only the last one says what is loaded."""
    names = [f.name.lower() for f in Function if f >= 16]
    x = np.abs(values(4)) + F32(0.5)
    lab = Lab()
    lab.k.scalar.load_table(names)
    xt = put(lab, "x", x)
    for name in names:
        lab.k.scalar.activation(lab.out(name, "fp32", 4)[:, :], xt, name)
    found = lab.run()
    masks = [i.imm0 for i in lab.program.queues[Queue.SCALAR] if i.opcode == Opcode.LOAD_TABLE]
    assert len(masks) > 1 and masks[-1] == 0xFFFF0000 and not any(masks[:-1])
    for name in names:
        assert np.array_equal(found[name], through_table(x.view(np.uint32), table(name))), name


REFUSED: list[tuple[str, Callable[[Any, Any], object]]] = [
    ("there is no function 'gelu2'; there are copy, abs,", lambda s, t: s.activation(t, t, "gelu2")),
    (
        "function gelu is not in the table loaded last (none); use k.scalar.load_table",
        lambda s, t: s.activation(t, t, "gelu"),
    ),
    (
        "function gelu is not in the table loaded last (sqrt); use k.scalar.load_table",
        lambda s, t: (s.load_table(["sqrt"]), s.activation(t, t, "gelu")),
    ),
    ("there is no table of 'relu'", lambda s, t: s.load_table(["relu"])),
    ("a table needs at least one function", lambda s, t: s.load_table([])),
    (
        "subtract-bypass, bypass-bypass, not add-multiply",
        lambda s, t: s.activation(t, t, "copy", ops=("add", "multiply")),
    ),
    ("a slope belongs to prelu, leaky_relu, not to relu", lambda s, t: s.activation(t, t, "relu", slope=1.0)),
    (
        "activation needs its second operand for the bias, so it cannot take init",
        lambda s, t: s.activation(t, t, "copy", scale=2.0, bias=1.0, reduce="load_reduce", init=0.0),
    ),
    (
        "the reduction of activation takes the operators add, max, min, absmax, absmin, not 'multiply'",
        lambda s, t: s.activation(t, t, "copy", reduce="reduce", reduce_op="multiply"),
    ),
    (
        "with bypass has nothing to reverse",
        lambda s, t: s.activation(t, t, "copy", ops=("bypass", "bypass"), reverse0=True),
    ),
    (
        "tensor_scalar on the scalar engine takes the operators multiply, add, subtract, bypass, not 'max'",
        lambda s, t: s.tensor_scalar(t, t, "max", 1.0),
    ),
    (
        "tensor_scalar on the scalar engine takes the operators add, subtract, bypass, not 'multiply'",
        lambda s, t: s.tensor_scalar(t, t, "add", 1.0, "multiply", 2.0),
    ),
    ("with multiply needs an operand a", lambda s, t: s.tensor_scalar(t, t, "multiply")),
    ("with bypass takes no operand b", lambda s, t: s.tensor_scalar(t, t, "add", 1.0, "bypass", 2.0)),
    ("with bypass has nothing to reverse", lambda s, t: s.tensor_scalar(t, t, "add", 1.0, reverse1=True)),
    ("tensor_copy needs the same shape on both sides", lambda s, t: s.tensor_copy(t, t[:, :3])),
    ("activation needs the same shape on both sides", lambda s, t: s.activation(t, t[:, :3], "copy")),
]


@pytest.mark.parametrize(("sentence", "action"), REFUSED)
def test_refused(sentence: str, action: Callable[[Any, Any], object]):
    k = Kernel(TINY, "refused")
    with pytest.raises(KernelError, match=re.escape(sentence)) as error:
        action(k.scalar, k.sbuf("t", partitions=8, columns=8, dtype="bf16")[:, :])
    assert "\n" not in str(error.value)


def halves() -> np.ndarray:
    """Codes of 16 bits, NaNs of any payload among them."""
    return np.random.default_rng(5).integers(0, 1 << 16, (P, 40), dtype=np.uint16)


@pytest.mark.parametrize("dtype", ["bf16", "fp16", "int16"])
def test_tensor_copy_keeps_every_bit(dtype: str):
    lab = Lab()
    lab.k.scalar.tensor_copy(lab.out("y", dtype, 40)[:, :], lab.put("x", dtype, halves())[:, :])
    assert np.array_equal(lab.run()["y"], halves())
    assert [i.opcode for i in lab.program.queues[Queue.SCALAR] if i.dst] == [Opcode.SCALAR_COPY]


def test_tensor_copy_converts():
    x = values(40)
    lab = Lab()
    lab.k.scalar.tensor_copy(lab.out("y", "bf16", 40)[:, :], put(lab, "x", x))
    assert np.array_equal(lab.run()["y"], encode(x, "bf16"))


AFFINE: list[tuple[tuple[Any, ...], dict[str, bool], Callable[[np.ndarray], np.ndarray]]] = [
    (("multiply", 3.0), {}, lambda x: x * F32(3)),
    (("subtract", 1.5, "add", 0.25), {}, lambda x: (x - F32(1.5)) + F32(0.25)),
    (("add", 1.5, "subtract", 2.0), {"reverse1": True}, lambda x: F32(2) - (x + F32(1.5))),
    (("subtract", 0.5, "subtract", 2.0), {"reverse0": True}, lambda x: (F32(0.5) - x) - F32(2)),
    (("bypass", None, "add", 1.0), {}, lambda x: x + F32(1)),
]


@pytest.mark.parametrize(("operands", "reverse", "truth"), AFFINE)
def test_tensor_scalar(operands: tuple[Any, ...], reverse: dict[str, bool], truth: Callable[[np.ndarray], np.ndarray]):
    x = values(20)
    lab = Lab()
    lab.k.scalar.tensor_scalar(lab.out("y", "fp32", 20)[:, :], put(lab, "x", x), *operands, **reverse)
    assert np.array_equal(lab.run()["y"].view(F32), truth(x))


def test_tensor_scalar_with_columns_is_that_of_the_vector_engine():
    x, a, b = values(20), values(1, seed=1), values(1, seed=2)
    lab = Lab()
    x_, a_, b_ = put(lab, "x", x), put(lab, "a", a), put(lab, "b", b)
    lab.k.scalar.tensor_scalar(lab.out("mine", "fp32", 20)[:, :], x_, "multiply", a_, "subtract", b_)
    lab.k.vector.tensor_scalar(lab.out("its", "fp32", 20)[:, :], x_, "multiply", a_, "subtract", b_)
    found = lab.run()
    assert np.array_equal(found["mine"], found["its"]) and np.array_equal(found["mine"].view(F32), x * a - b)


def test_pairs_halve_the_cycles():
    lab = Lab()
    x = lab.put("x", "bf16", halves())
    lab.k.scalar.tensor_copy(lab.out("y", "bf16", 40)[:, :], x[:, :])
    lab.run()
    assert lab.program.scalar_cycles == 20


def test_bf16_in_and_out():
    x = encode(values(40), "bf16")
    lab = Lab()
    lab.k.scalar.load_table(["sigmoid"])
    lab.k.scalar.activation(lab.out("y", "bf16", 40)[:, :], lab.put("x", "bf16", x)[:, :], "sigmoid")
    truth = 1 / (1 + np.exp(-decode(x, "bf16").astype(np.float64)))
    assert np.array_equal(lab.run()["y"], encode(truth.astype(F32), "bf16"))
