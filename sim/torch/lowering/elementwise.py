"""Operators on each element by itself."""

from typing import Any

import torch

from firmware.graph.ir import Value
from sim.torch.dtypes import FORMATS
from sim.torch.errors import Unsupported
from sim.torch.lowering.bounds import BITS, EXACT, FUNCTION, ROUNDED
from sim.torch.lowering.builder import Builder
from sim.torch.lowering.registry import lower

__all__: list[str] = []

Operand = Value | float
_FLOATS = ("fp32", "bf16", "fp16")
_TORCH = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
_WIDTH = {"uint8": 0, "int32": 1, "bf16": 2, "fp16": 3, "fp32": 4}


def _together(*operands: Any) -> str:
    """The format in which operands meet, as torch promotes them: one of no axes gives way to others of its kind."""
    formats = {v.dtype for v in operands if isinstance(v, Value)}
    tall = {v.dtype for v in operands if isinstance(v, Value) and v.shape}
    formats = tall if tall & set(_FLOATS) else formats
    if not formats:
        raise Unsupported("it has no tensor")
    if {"bf16", "fp16"} <= formats:
        return "fp32"
    if any(isinstance(v, float) for v in operands) and not formats & set(_FLOATS):
        return "fp32"
    return max(formats, key=_WIDTH.__getitem__)


def _no_bytes(b: Builder) -> None:
    if b.dtype == "uint8":
        raise Unsupported("bytes wrap around in torch where the machine's end at 0 and 255")


def _unary(names: str, function: str, becomes: str = "") -> None:
    def run(b: Builder, x: Value) -> Value:
        _no_bytes(b)
        return b.cast(b.unary(function, x), b.dtype)

    bound = EXACT if function in ("negative", "abs", "relu", "sign", "square") else FUNCTION
    lower(names, becomes or "unary, by its table or operator", bound)(run)


for _name, _function in {
    "exp": "exp",
    "log": "log",
    "tanh": "tanh",
    "sigmoid": "sigmoid",
    "erf": "erf",
    "sqrt": "sqrt",
    "rsqrt": "rsqrt",
    "reciprocal": "reciprocal",
    "relu": "relu",
    "silu": "silu",
    "mish": "mish",
    "atan": "arctan",
    "sign": "sign",
    "neg": "negative",
    "abs": "abs",
}.items():
    _unary(f"aten.{_name}.default", _function)


@lower("aten.gelu.default", "unary gelu, gelu_tanh", FUNCTION)
def gelu(b: Builder, x: Value, approximate: str = "none") -> Value:
    """Both forms."""
    return b.unary("gelu_tanh" if approximate == "tanh" else "gelu", x)


@lower("aten.softplus.default", "unary softplus", FUNCTION)
def softplus(b: Builder, x: Value, beta: float = 1, threshold: float = 20) -> Value:
    """Of beta 1, and of a threshold behind which it is x by itself."""
    if beta != 1 or threshold < 20:
        raise Unsupported(f"the table of softplus is that of beta 1 and threshold 20, not {beta} and {threshold}")
    return b.unary("softplus", x)


def _scaled(b: Builder, y: Operand, alpha: float, dtype: str) -> Operand:
    if isinstance(y, Value):
        return y if alpha == 1 else b.binary("multiply", y, alpha, dtype)
    return y * alpha


@lower("aten.add.Tensor aten.add.Scalar", "binary add", EXACT)
def add(b: Builder, x: Operand, y: Operand, alpha: float = 1) -> Value:
    """x + alpha y."""
    return b.binary("add", x, _scaled(b, y, alpha, b.dtype), b.dtype)


@lower("aten.sub.Tensor aten.sub.Scalar", "binary subtract", EXACT)
def sub(b: Builder, x: Operand, y: Operand, alpha: float = 1) -> Value:
    """x - alpha y."""
    return b.binary("subtract", x, _scaled(b, y, alpha, b.dtype), b.dtype)


@lower("aten.rsub.Scalar aten.rsub.Tensor", "binary subtract", EXACT)
def rsub(b: Builder, x: Operand, y: Operand, alpha: float = 1) -> Value:
    """y - alpha x."""
    return b.binary("subtract", y, _scaled(b, x, alpha, b.dtype), b.dtype)


@lower("aten.mul.Tensor aten.mul.Scalar", "binary multiply", EXACT)
def mul(b: Builder, x: Operand, y: Operand) -> Value:
    """x y."""
    return b.binary("multiply", x, y, b.dtype)


@lower("aten.div.Tensor aten.div.Scalar", "binary divide; by a number: multiply by its reciprocal", EXACT)
def div(b: Builder, x: Operand, y: Operand) -> Value:
    """x / y, true division."""
    if isinstance(y, Value) or y == 0:
        return b.binary("divide", x, y, b.dtype)
    return b.binary("multiply", x, 1 / y, b.dtype)


@lower("aten.maximum.default", "binary maximum", BITS)
def maximum(b: Builder, x: Value, y: Value) -> Value:
    """The larger one."""
    return b.binary("maximum", x, y, b.dtype)


@lower("aten.minimum.default", "binary minimum", BITS)
def minimum(b: Builder, x: Value, y: Value) -> Value:
    """The smaller one."""
    return b.binary("minimum", x, y, b.dtype)


@lower("aten.clamp.default aten.clamp.Tensor aten.clamp_min.default", "maximum, minimum", BITS)
def clamp(b: Builder, x: Value, low: Any = None, high: Any = None) -> Value:
    """Between the two, either of which may be left out."""
    y = x if low is None else b.binary("maximum", x, low, b.dtype)
    return y if high is None else b.binary("minimum", y, high, b.dtype)


@lower("aten.hardtanh.default", "maximum, minimum", BITS)
def hardtanh(b: Builder, x: Value, low: float = -1, high: float = 1) -> Value:
    """Between the two."""
    return clamp(b, x, low, high)


@lower("aten.clamp_max.default", "binary minimum", BITS)
def clamp_max(b: Builder, x: Value, high: float) -> Value:
    """At most `high`."""
    return b.binary("minimum", x, high, b.dtype)


@lower("aten.pow.Tensor_Scalar", "square, sqrt, rsqrt, reciprocal, products; else exp(y log x), of x > 0", FUNCTION)
def power(b: Builder, x: Value, y: float) -> Value:
    """x^y. Whole powers up to 4 by products."""
    _no_bytes(b)
    wide = b.cast(x, "fp32")
    simple = {2: "square", 0.5: "sqrt", -0.5: "rsqrt", -1: "reciprocal"}
    if y == 1:
        return b.cast(wide, b.dtype)
    if y in simple:
        return b.cast(b.unary(simple[y], wide), b.dtype)
    if y in (3, 4):
        square = b.unary("square", wide)
        return b.cast(b.binary("multiply", square, wide if y == 3 else square), b.dtype)
    if float(y).is_integer():
        raise Unsupported(f"the power {y} of a number below 0 has no logarithm")
    return b.cast(b.unary("exp", b.binary("multiply", b.unary("log", wide), y)), b.dtype)


for _name, _op in {
    "eq": "equal",
    "ne": "not_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "lt": "less",
    "le": "less_equal",
}.items():

    def _compare(b: Builder, x: Value, y: Operand, op: str = _op) -> Value:
        together = _together(x, y)
        if not isinstance(y, Value) and together in _FLOATS:
            y = torch.tensor(y, dtype=_TORCH[together]).item()  # torch rounds the number to the tensor's format
        return b.binary(op, x, y, together)

    lower(f"aten.{_name}.Tensor aten.{_name}.Scalar", "binary, a comparison", BITS)(_compare)


def _truth(b: Builder, x: Value) -> Value:
    return x if x.dtype == "uint8" else b.binary("not_equal", x, 0.0)


for _name in ("and", "or", "xor"):

    def _logical(b: Builder, x: Value, y: Value, op: str = _name) -> Value:
        return b.binary(op, _truth(b, x), _truth(b, y), "uint8")

    def _bitwise(b: Builder, x: Value, y: Value, op: str = _name) -> Value:
        if not b.truth:
            raise Unsupported("bit operators are connected for truth values only")
        return b.binary(op, x, y, "uint8")

    lower(f"aten.logical_{_name}.default", "binary, of truth values", BITS)(_logical)
    lower(f"aten.bitwise_{_name}.Tensor", "binary, of truth values", BITS)(_bitwise)


@lower("aten.logical_not.default", "unary not", BITS)
def logical_not(b: Builder, x: Value) -> Value:
    """1 where x is 0."""
    return b.unary("not", x, "uint8") if x.dtype == "uint8" else b.binary("equal", x, 0.0)


@lower("aten.bitwise_not.default", "unary not, of truth values", BITS)
def bitwise_not(b: Builder, x: Value) -> Value:
    """Of truth values."""
    if not b.truth:
        raise Unsupported("bit operators are connected for truth values only")
    return b.unary("not", x, "uint8")


@lower("aten.where.self aten.where.ScalarSelf aten.where.ScalarOther", "where", BITS)
def where(b: Builder, condition: Value, x: Operand, y: Operand) -> Value:
    """x where the condition holds, else y."""
    inputs, attributes, shapes = {"condition": condition}, {}, [condition.shape]
    for name, value in (("a", x), ("b", y)):
        if isinstance(value, Value):
            inputs[name] = b.cast(value, b.dtype)
            shapes.append(value.shape)
        else:
            attributes[f"scalar_{name}"] = float(value)
    return b.node("where", inputs, b.shape, b.dtype, **attributes)


@lower("aten.masked_fill.Scalar aten.masked_fill.Tensor", "where", BITS)
def masked_fill(b: Builder, x: Value, mask: Value, value: Operand) -> Value:
    """`value` where the mask holds."""
    return where(b, mask, value, x)


@lower("aten.addcmul.default", "binary multiply, add", ROUNDED)
def addcmul(b: Builder, x: Value, y: Value, z: Value, value: float = 1) -> Value:
    """x + value y z."""
    return b.binary("add", x, _scaled(b, b.binary("multiply", y, z, b.dtype), value, b.dtype), b.dtype)


@lower("aten.leaky_relu.default", "maximum, minimum, multiply, add", EXACT)
def leaky_relu(b: Builder, x: Value, slope: float = 0.01) -> Value:
    """x, or slope x below 0."""
    below = b.binary("multiply", b.binary("minimum", x, 0.0), slope)
    return b.binary("add", b.binary("maximum", x, 0.0), below)


@lower("aten._to_copy.default aten.to.dtype prims.convert_element_type.default", "cast", BITS)
def to_copy(b: Builder, x: Value, *dtype: Any, **options: Any) -> Value:
    """Rounded to another dtype; to a truth value: not 0."""
    want = options.get("dtype") or (dtype[0] if dtype else None)
    if str(want) == "torch.bool":
        return b.binary("not_equal", x, 0.0)  # of bytes too, which may be more than 1
    if want is not None and want not in FORMATS:
        raise Unsupported(f"the machine has no {str(want).removeprefix('torch.')}")
    if x.dtype in _FLOATS and b.dtype not in _FLOATS:
        raise Unsupported("torch cuts a number off where the machine rounds it to nearest")
    if x.dtype == "int32":
        _no_bytes(b)
    return b.cast(x, b.dtype)
