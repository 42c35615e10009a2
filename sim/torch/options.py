"""What torch.compile(..., backend="plexus", options=...) takes, and what it comes to."""

from collections.abc import Mapping
from dataclasses import dataclass, field
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
    of the array)."""

    config: str | Config = "small"
    settings: Settings = field(default_factory=tuple)
    device: Literal["rtl", "golden"] = "rtl"
    check: str = "golden"
    fallback: bool = True
    products: Literal["bf16", "fp32"] = "bf16"

    @property
    def cfg(self) -> Config:
        """The configuration."""
        return load_config(self.config, self.settings)

    def of_run(self) -> Options:
        """Options of `plexus.run`."""
        return {"config": self.cfg, "device": self.device, "check": self.check}


def torch_options(given: Any = None) -> TorchOptions:
    """Options that have been checked. Errors: TorchError, one sentence."""
    if given is not None and not isinstance(given, Mapping):
        raise TorchError(f'options are a mapping, as {{"config": "tiny"}}, not {given!r}')
    names = TorchOptions.__dataclass_fields__
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
            need_check(str(found.check))
            found.cfg  # noqa: B018 (it is loaded, so that what is wrong with it is said now)
    except PlexusError as error:
        raise TorchError(str(error)) from error
    return found
