"""Plexus from Python: your arrays on the Verilated core, beside the golden machine. docs/api.md tells all of it.

import numpy as np, plexus
result = plexus.gemm(np.eye(4), np.ones((4, 4)), config="tiny")
result["c"], result.cycles
"""

import importlib
from typing import TYPE_CHECKING, Any

from firmware.kernel import Kernel
from firmware.program import Program
from rtl.contract.config import Config
from rtl.contract.isa import Queue
from sim.api import nki
from sim.api.configs import list_configs, load_config
from sim.api.errors import RunError
from sim.api.operators import attention, ffn, gemm, layernorm, moe, softmax, transpose
from sim.api.options import Options
from sim.api.result import Result
from sim.api.run import run
from sim.api.session import Session
from sim.api.tensor import Tensor
from sim.api.version import version
from sim.errors import PlexusError as Error
from sim.torch.entry_points import announce

if TYPE_CHECKING:
    from types import ModuleType

    torch: ModuleType

__all__ = [
    "Config",
    "Error",
    "Kernel",
    "Options",
    "Program",
    "Queue",
    "Result",
    "RunError",
    "Session",
    "Tensor",
    "__version__",
    "attention",
    "ffn",
    "gemm",
    "layernorm",
    "list_configs",
    "load_config",
    "moe",
    "nki",
    "run",
    "softmax",
    "transpose",
]

__version__ = version()
announce()


def __getattr__(name: str) -> Any:
    if name == "torch":  # imported when it is asked for: few have PyTorch, and it takes seconds
        return importlib.import_module("sim.torch.door")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
