"""What torch calls by itself: entry points of the groups torch.backends and torch_dynamo_backends."""

import importlib.util
from typing import Any

from sim.torch.errors import TorchError

__all__ = ["OLDEST", "device", "need_torch", "torch_backend"]

OLDEST = (2, 14)
"""The version of torch whose hooks are used."""


def need_torch() -> None:
    """Errors: TorchError if there is no torch, or one that is too old."""
    if importlib.util.find_spec("torch") is None:
        raise TorchError("torch is not installed: make torch puts it into .venv")
    import torch

    version = tuple(int(n) for n in torch.__version__.split(".")[:2])
    if version < OLDEST:
        raise TorchError(
            f"torch is {torch.__version__}, older than {'.'.join(map(str, OLDEST))}: make torch puts that into .venv"
        )


def device() -> None:
    """Called by `import torch`: names the device `plexus`; what computes there is loaded with its first tensor."""
    import torch

    if tuple(int(n) for n in torch.__version__.split(".")[:2]) >= OLDEST:
        from sim.torch.eager.device import set_up

        set_up()


def torch_backend(gm: Any, example_inputs: Any, **given: Any) -> Any:
    """The backend, imported when a graph is compiled."""
    need_torch()
    from sim.torch.backend import backend

    return backend(gm, example_inputs, **given)
