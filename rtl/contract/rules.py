"""What each opcode may ask for: operands, memories, number formats, limits. Issue enforces this table.

Order of the checks, first hit wins (docs/isa.md): opcode and reserved fields, semaphores, ring, then
src0, then dst, each in the order space, dtype, partitions, alignment, pattern, range, then shapes.
"""

from dataclasses import dataclass

from rtl.contract.config import Config
from rtl.contract.isa import Opcode
from rtl.contract.memmap import Space

__all__ = ["ELEMENTS_MAX", "RULES", "OpcodeRule", "OperandRule", "elements_limit", "partitions_limit"]

ELEMENTS_MAX = 1 << 17
"""Most elements a partition of a TENSOR_COPY: a whole SBUF partition of 16-bit elements."""

_MOVING = {Space.SBUF: ("bf16", "fp16")}
_ANY_FLOAT = ("fp32", "bf16", "fp16")


@dataclass(frozen=True, slots=True, kw_only=True)
class OperandRule:
    """One operand: which formats in which memories, how many partitions and elements.

    `partitions` names the limit: start + count is at most tensor.rows ("rows"), tensor.cols ("cols") or
    the partitions of the core ("core"). `elements` names the limit of elements a partition: "cols",
    "moving" (tensor.moving_max) or "copy" (ELEMENTS_MAX). `from_zero`: starts at partition 0.
    `ascending`: no element twice, each dimension steps over the whole one inside it.
    """

    field: str
    dtypes: dict[Space, tuple[str, ...]]
    partitions: str
    elements: str
    from_zero: bool = False
    ascending: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OpcodeRule:
    """An opcode. Operands and immediates that it does not name must be 0, flags too."""

    operands: tuple[OperandRule, ...] = ()
    immediates: tuple[str, ...] = ()
    accumulate: bool = False
    same_partitions: bool = False  # partition_count of src0 and dst; elements are equal whenever both exist


RULES: dict[Opcode, OpcodeRule] = {
    Opcode.NOP: OpcodeRule(),
    Opcode.DMA_TRIGGER: OpcodeRule(immediates=("imm0", "imm1")),
    Opcode.LOAD_STATIONARY: OpcodeRule(
        operands=(OperandRule(field="src0", dtypes=_MOVING, partitions="rows", elements="cols"),),
    ),
    Opcode.MULTIPLY_MOVING: OpcodeRule(
        operands=(
            OperandRule(field="src0", dtypes=_MOVING, partitions="rows", elements="moving"),
            OperandRule(
                field="dst",
                dtypes={Space.PSUM: ("fp32",)},
                partitions="cols",
                elements="moving",
                from_zero=True,
                ascending=True,
            ),
        ),
        accumulate=True,
    ),
    Opcode.TENSOR_COPY: OpcodeRule(
        operands=(
            OperandRule(
                field="src0",
                dtypes={Space.SBUF: _ANY_FLOAT, Space.PSUM: ("fp32",)},
                partitions="core",
                elements="copy",
            ),
            OperandRule(field="dst", dtypes={Space.SBUF: _ANY_FLOAT}, partitions="core", elements="copy"),
        ),
        same_partitions=True,
    ),
}


def partitions_limit(cfg: Config, rule: OperandRule) -> int:
    """First partition that an operand must not touch."""
    return {"rows": cfg.tensor.rows, "cols": cfg.tensor.cols, "core": cfg.partitions}[rule.partitions]


def elements_limit(cfg: Config, rule: OperandRule) -> int:
    """Most elements of a partition."""
    limits = {"cols": cfg.tensor.cols, "moving": cfg.tensor.moving_max, "copy": ELEMENTS_MAX}
    return limits[rule.elements]
