"""Operators of nki.language as they are: functions of arrays, and names that instructions take."""

from typing import Any

from firmware.views import KernelError
from rtl.contract.isa import AluOp, Function

__all__ = ["ALU", "FUNCTIONS", "REDUCTIONS", "name_of_op"]

ALU = {
    "add": AluOp.ADD,
    "subtract": AluOp.SUBTRACT,
    "multiply": AluOp.MULTIPLY,
    "maximum": AluOp.MAX,
    "minimum": AluOp.MIN,
    "equal": AluOp.EQ,
    "not_equal": AluOp.NE,
    "greater": AluOp.GT,
    "greater_equal": AluOp.GE,
    "less": AluOp.LT,
    "less_equal": AluOp.LE,
    "logical_and": AluOp.AND,
    "logical_or": AluOp.OR,
    "logical_xor": AluOp.XOR,
    "bitwise_and": AluOp.BIT_AND,
    "bitwise_or": AluOp.BIT_OR,
    "bitwise_xor": AluOp.BIT_XOR,
    "left_shift": AluOp.SHIFT_LEFT,
    "right_shift": AluOp.SHIFT_RIGHT,
}
"""Operators of two operands that an instruction has."""

FUNCTIONS = {
    "exp": Function.EXP,
    "log": Function.LOG,
    "sqrt": Function.SQRT,
    "rsqrt": Function.RSQRT,
    "tanh": Function.TANH,
    "sigmoid": Function.SIGMOID,
    "gelu": Function.GELU,
    "gelu_apprx_tanh": Function.GELU_TANH,
    "silu": Function.SILU,
    "softplus": Function.SOFTPLUS,
    "mish": Function.MISH,
    "erf": Function.ERF,
    "sin": Function.SIN,
    "arctan": Function.ARCTAN,
    "sign": Function.SIGN,
    "relu": Function.RELU,
    "square": Function.SQUARE,
    "abs": Function.ABS,
    "copy": Function.COPY,
}
"""Functions of one operand that the scalar engine has."""

REDUCTIONS = {"max": AluOp.MAX, "min": AluOp.MIN, "sum": AluOp.ADD, "add": AluOp.ADD} | {
    "maximum": AluOp.MAX,
    "minimum": AluOp.MIN,
    "abs_max": AluOp.ABSMAX,
    "abs_min": AluOp.ABSMIN,
}
"""Operators over axes that an instruction has."""

_NUMPY = {
    "amax": "max",
    "amin": "min",
    "absolute": "abs",
    "true_divide": "divide",
    "mul": "multiply",
    "sub": "subtract",
}


def name_of_op(op: Any) -> str:
    """The name of an operator of nki.language or NumPy, or a name. KernelError for anything else."""
    name = op if isinstance(op, str) else getattr(op, "__name__", None)
    if not isinstance(name, str):
        raise KernelError(f"an operator is one of nki.language, as in nl.add, not {op!r}")
    return _NUMPY.get(name, name)
