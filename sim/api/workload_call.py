"""A workload's program on arrays, as operators call it."""

from collections.abc import Mapping
from operator import index
from typing import Any

import numpy as np

from firmware.own_arrays import WORKLOAD_FORMATS
from firmware.own_makers import find_own
from firmware.workloads import find_workload
from sim.api.errors import as_errors
from sim.api.execute import execute
from sim.api.options import Options, settled
from sim.api.result import Result
from sim.api.tensor import Operand, operand
from sim.run.host_arrays import KINDS

__all__ = ["run_workload"]


@as_errors()
def run_workload(
    workload: str, arrays: Mapping[str, Operand | None], params: Mapping[str, Any], options: Options
) -> Result:
    """A workload on arrays; those that are None, and parameters, count as not given."""
    found = settled(options)
    own, of = find_own(workload), find_workload(workload)
    given = {name: operand(name, value, found.cfg) for name, value in arrays.items() if value is not None}
    asked = {name: _plain(value, of.params[name].choices) for name, value in params.items() if value is not None}
    with np.errstate(all="ignore"):  # infinities and NaN are rounded like all numbers
        settled_params = own.settle(of, asked, given)
        program = own.build(of, of.configure(found.cfg, settled_params), settled_params, given, found.seed)
    return execute(program, found, workload, settled_params)


def _plain(value: Any, choices: tuple[str, ...]) -> Any:
    """A parameter as a workload takes it: numbers of NumPy as Python's, dtypes by the names of their formats."""
    if isinstance(value, np.generic):
        return value.item()
    if not choices:
        return index(value) if hasattr(value, "__index__") and not isinstance(value, (bool, int)) else value
    if isinstance(value, str) and value in choices:
        return value
    try:
        kind = np.dtype(value)
    except (TypeError, ValueError, SyntaxError):
        return value
    name = next((name for name, dtype in KINDS.items() if dtype == kind), kind.name)
    name = WORKLOAD_FORMATS.get(name, name)
    return name if name in choices else kind.name
