"""What `plexus.torch` offers."""

from sim.torch.autoload import need_torch
from sim.torch.errors import TorchError

need_torch()

from sim.torch.backend import backend  # noqa: E402 (torch may be missing, and then a sentence says so)
from sim.torch.eager.device import device_options, on_cpu  # noqa: E402
from sim.torch.options import TorchOptions  # noqa: E402
from sim.torch.record import CALLS as calls  # noqa: E402
from sim.torch.record import Call, OnCpu, last  # noqa: E402

__all__ = ["Call", "OnCpu", "TorchError", "TorchOptions", "backend", "calls", "device_options", "last", "on_cpu"]
