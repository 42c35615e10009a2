"""Parameters of workload gpsimd that belong to operators of the library; each takes those that it knows."""

from enum import IntEnum

from firmware.params import SEED, SIZE_MAX, size
from firmware.workload import Param
from rtl.contract.gpsimd_operators import BINS_MAX, K_MAX, Gather, Integer, Reduction, Relation

__all__ = ["OPERATOR_PARAMS"]


def _choice(doc: str, *kinds: type[IntEnum]) -> Param:
    names = dict.fromkeys(one.name.lower() for kind in kinds for one in kind)
    return Param(type=str, default=None, doc=doc, choices=tuple(names))


def _number(doc: str, minimum: int, maximum: int) -> Param:
    return Param(type=int, default=None, doc=doc, minimum=minimum, maximum=maximum)


OPERATOR_PARAMS: dict[str, Param] = {
    "program": Param(type=str, default=None, doc="an operator of the library, as topk or route, on random values"),
    "partitions": size(None, "operators; of their operands, all if not given"),
    "columns": size(None, "operators; of the source, 1024 of topk, else 256"),
    "k": _number("topk, route; how many are chosen, 8 and 2 if not given", 1, K_MAX),
    "op": _choice("integer, partition_reduce; what they do, add and sum if not given", Integer, Reduction),
    "number": _number("integer; y, another operand if not given", -(1 << 31), (1 << 32) - 1),
    "mode": _choice("gather; what an index names, columns if not given", Gather),
    "relation": _choice("affine_select; to 0, ge if not given", Relation),
    "offset": _number("iota, affine_select; 0 if not given", -(1 << 31), (1 << 31) - 1),
    "multiplier": _number("iota, affine_select; of a partition, 0 and 1 if not given", -(1 << 31), (1 << 31) - 1),
    "step": _number("iota, affine_select; from column to column, 1 and -1 if not given", -(1 << 15), (1 << 15) - 1),
    "fill": Param(type=float, default=None, doc="affine_select; what is taken elsewhere, 0 if not given"),
    "exclusive": Param(type=bool, default=None, doc="prefix_sum; without the element itself, no if not given"),
    "bins": _number("histogram; 64 if not given", 1, BINS_MAX),
    "percent": _number("nonzero; of elements that are not 0, 50 if not given", 0, 100),
    "capacity": size(None, "nonzero, route; columns of the result, room for all if not given"),
    "tokens": _number("route; 64 if not given", 1, SIZE_MAX),
    "experts": _number("route; 8 if not given", 1, 256),
    "dtype": Param(
        type=str, default=None, doc="topk, gather, route and the like; fp32 if not given", choices=("fp32", "int32")
    ),
    "seed": SEED,
}  # fmt: skip
