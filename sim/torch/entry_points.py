"""Our entry points for torch where the sources are only on the path: an installation has them from pyproject.toml."""

import importlib
import sys
from collections.abc import Iterable
from importlib.metadata import Distribution, DistributionFinder
from pathlib import Path
from typing import Any

__all__ = ["NAME", "announce", "later"]

NAME = "plexus-for-torch"
_FILES = {
    "METADATA": f"Metadata-Version: 2.1\nName: {NAME}\nVersion: 0\n",
    "entry_points.txt": (
        "[torch.backends]\nplexus = sim.torch.autoload:device\n"
        "[torch_dynamo_backends]\nplexus = sim.torch.autoload:torch_backend\n"
    ),
}


_ALL = DistributionFinder.Context()


class _Announced(Distribution):
    def read_text(self, filename: str) -> str | None:
        return _FILES.get(filename)

    def locate_file(self, path: Any) -> Path:
        return Path(__file__).parent / str(path)


class _Announcer(DistributionFinder):
    """Finds no module, and this distribution."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> None:
        return None

    def find_distributions(self, context: DistributionFinder.Context = _ALL) -> Iterable[Distribution]:
        return [_Announced()] if context.name in (None, NAME) else []


def announce() -> None:
    """From now on torch finds them. If it is there already, the device gets its name now."""
    if not any(isinstance(finder, _Announcer) for finder in sys.meta_path):
        sys.meta_path.append(_Announcer())
    if "torch" in sys.modules and hasattr(sys.modules["torch"], "_register_device_module"):
        from sim.torch.autoload import device

        device()


def later(name: str) -> Any:
    """`plexus.torch`, imported when it is asked for: few have PyTorch, and it takes seconds. Errors: AttributeError for
    another name, TorchError without torch."""
    if name == "torch":
        return importlib.import_module("sim.torch.door")
    raise AttributeError(f"module 'plexus' has no attribute {name!r}")
