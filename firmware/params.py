"""Parameters that many workloads have."""

from firmware.workload import Param

__all__ = ["DTYPE", "ROWS", "SEED", "SIZE_MAX", "size"]

SIZE_MAX = 1 << 20

SEED = Param(type=int, default=None, doc="of the values; the run's seed if not given", minimum=0)
ROWS = Param(type=int, default=None, doc="rows; one a partition if not given", minimum=1, maximum=SIZE_MAX)
DTYPE = Param(type=str, default="bf16", doc="format of rows and result", choices=("bf16", "fp32", "fp16"))


def size(default: int | None, doc: str) -> Param:
    """A number of rows, columns or the like."""
    return Param(type=int, default=default, doc=doc, minimum=1, maximum=SIZE_MAX)
