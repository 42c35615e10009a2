"""What torch.compile(..., backend="plexus", options=...) takes, and what it comes to."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Literal

from rtl.contract.config import Config
from sim.api.configs import Settings, load_config
from sim.api.errors import as_errors
from sim.api.options import Options
from sim.api.session import DEVICES
from sim.errors import PlexusError
from sim.run.checking import need_check
from sim.torch.errors import TorchError

__all__ = ["PRODUCTS", "TorchOptions", "torch_options"]

PRODUCTS = ("bf16", "fp32")


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchOptions:
    """config, settings, device, check: as of `plexus.run`. `fallback`: what the machine has not is computed by torch on
    the CPU, or refused. `products`: to what operands of matrix products in FP32 are rounded, bf16, or fp32 (four passes
    of the array). `folder`: where each program that runs leaves report.json and, on the RTL, trace.npz, in a folder of
    its own: 1-program_0 is of the first."""

    config: str | Config = "small"
    settings: Settings = field(default_factory=tuple)
    device: Literal["rtl", "golden"] = "rtl"
    check: str = "golden"
    fallback: bool = True
    products: Literal["bf16", "fp32"] = "bf16"
    folder: str | os.PathLike[str] | None = None
    _ran: Iterator[int] = field(default_factory=partial(count, 1), repr=False, compare=False)

    @property
    def cfg(self) -> Config:
        """The configuration."""
        return load_config(self.config, self.settings)

    def of_run(self, name: str) -> Options:
        """Options of `plexus.run`, for a program of this name that is about to run."""
        found: Options = {"config": self.cfg, "device": self.device, "check": self.check}
        if self.folder is not None:
            found["folder"] = Path(self.folder) / f"{next(self._ran)}-{name}"
        return found


def torch_options(given: Any = None) -> TorchOptions:
    """Options that have been checked. Errors: TorchError, one sentence."""
    if given is not None and not isinstance(given, Mapping):
        raise TorchError(f'options are a mapping, as {{"config": "tiny"}}, not {given!r}')
    names = [name for name in TorchOptions.__dataclass_fields__ if not name.startswith("_")]
    if unknown := [name for name in given or {} if name not in names]:
        raise TorchError(f"there is no option {unknown[0]!r}; there are {', '.join(names)}")
    try:
        found = TorchOptions(**(given or {}))
        with as_errors():
            if found.device not in DEVICES:
                raise PlexusError(f"device must be {' or '.join(DEVICES)}, not {found.device!r}")
            if found.products not in PRODUCTS:
                raise PlexusError(f"products must be {' or '.join(PRODUCTS)}, not {found.products!r}")
            if not isinstance(found.fallback, bool):
                raise PlexusError(f"fallback is True or False, not {found.fallback!r}")
            if not isinstance(found.folder, (str, os.PathLike, type(None))):
                raise PlexusError(f"folder is a path, a text or a pathlib.Path, not {found.folder!r}")
            need_check(str(found.check))
            found.cfg  # noqa: B018 (it is loaded, so that what is wrong with it is said now)
    except PlexusError as error:
        raise TorchError(str(error)) from error
    return found
