"""Roughly how long an operation is, before its program is built: what is left of a layer is told by it."""

from firmware.kernels.gemm_formats import GEMM_FORMATS
from firmware.models.operations import Operation
from rtl.contract.config import Config

__all__ = ["expected_cycles"]

_BYTES = 2  # of a number, about


def expected_cycles(cfg: Config, operation: Operation) -> float:
    """Cycles by multiply-adds or bytes, whichever are more. At least 1."""
    p = operation.params
    area = cfg.tensor.rows * cfg.tensor.cols
    if operation.workload == "gemm":
        macs = p["m"] * p["k"] * p["n"] / float(GEMM_FORMATS[p["dtype"]].rate)
        numbers = p["m"] * p["k"] + p["k"] * p["n"] + p["m"] * p["n"]
    elif operation.workload == "attention":
        macs = p["heads"] * p["queries"] * p["seq"] * (p["head"] + p.get("values", p["head"]) + cfg.tensor.cols)
        numbers = p["heads"] * p["queries"] * p["head"] + p["kv_heads"] * p["seq"] * p["head"]
    else:
        macs = 0
        numbers = 3 * p.get("rows", p.get("tokens", 1)) * p.get("columns", p.get("heads", 1) * p.get("head", 1))
    return max(1.0, macs / area, numbers * _BYTES / cfg.hbm.bytes_per_cycle)
