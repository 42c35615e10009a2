"""Plexus from Python: your arrays on the Verilated core, beside the golden machine. docs/api.md tells all of it.

import numpy as np, plexus
result = plexus.gemm(np.eye(4), np.ones((4, 4)), config="tiny")
result["c"], result.cycles
"""

from firmware.kernel import Kernel
from firmware.program import Program
from rtl.contract.config import Config
from rtl.contract.isa import Queue
from sim.api import nki
from sim.api.configs import list_configs, load_config
from sim.api.errors import RunError
from sim.api.layer_operators import elementwise, gated_ffn, rope
from sim.api.operators import attention, ffn, gemm, layernorm, moe, softmax, transpose
from sim.api.options import Options
from sim.api.result import Result
from sim.api.run import run
from sim.api.session import Session
from sim.api.tensor import Tensor
from sim.api.version import version
from sim.errors import PlexusError as Error
from sim.torch.entry_points import announce
from sim.torch.entry_points import later as __getattr__  # noqa: F401 (`plexus.torch`, when it is asked for)

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
    "elementwise",
    "ffn",
    "gated_ffn",
    "gemm",
    "layernorm",
    "list_configs",
    "load_config",
    "moe",
    "nki",
    "rope",
    "run",
    "softmax",
    "transpose",
]

__version__ = version()
announce()
