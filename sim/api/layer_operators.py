"""What a decoder layer has beside products and attention, on arrays: the programs of these workloads."""

from typing import Literal, SupportsIndex, Unpack

from sim.api.options import Options
from sim.api.result import Result
from sim.api.tensor import Operand
from sim.api.workload_call import run_workload

__all__ = ["elementwise", "gated_ffn", "rope"]


def gated_ffn(x: Operand, gate: Operand, up: Operand, down: Operand, **options: Unpack[Options]) -> Result:
    """y [tokens, width] = (silu(x gate^T) * (x up^T)) down^T, in FP32.

    x [tokens, width], gate and up [hidden, width], down [width, hidden], rounded to BF16. options: Options. Errors:
    plexus.Error. Output: `y`.
    """
    return run_workload("gated-ffn", {"x": x, "gate": gate, "up": up, "down": down}, {}, options)


def rope(
    x: Operand,
    *,
    first: SupportsIndex = 0,
    theta: float = 10000.0,
    work: Literal["bf16", "fp32"] = "bf16",
    **options: Unpack[Options],
) -> Result:
    """y [tokens, heads, head], in BF16: halves of each head turned by an angle of token and pair (rotary positions).

    x [tokens, heads, head], rounded to BF16; head is even. first: position of the first token. theta: base of the
    angles. work: format of tables and products. options: Options. Errors: plexus.Error. Output: `y`.
    """
    return run_workload("rope", {"x": x}, {"first": first, "theta": theta, "work": work}, options)


def elementwise(
    a: Operand,
    b: Operand | None = None,
    *,
    op: Literal["add", "swiglu", "gelu", "silu"] = "add",
    **options: Unpack[Options],
) -> Result:
    """y [rows, columns], in BF16: a + b, silu(a) b ("swiglu"), or gelu or silu of a alone.

    a, b [rows, columns], rounded to BF16. options: Options. Errors: plexus.Error. Output: `y`.
    """
    return run_workload("elementwise", {"a": a, "b": b}, {"op": op}, options)
