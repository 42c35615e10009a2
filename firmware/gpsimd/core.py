"""What a GPSIMD core can run, and whether an image is for it."""

import re
from dataclasses import dataclass

from firmware.gpsimd.errors import FirmwareError
from firmware.gpsimd.image import Image
from rtl.contract.config import Config
from rtl.contract.gpsimd import BARE_EXTENSIONS, LANE_BITS, LOCAL_BYTES, VECTOR_EXTENSIONS, cores

__all__ = ["Core", "core_of", "need_fit"]

_WITH_VECTORS = "; --set gpsimd.vectors=true gives it vectors"


@dataclass(frozen=True, kw_only=True)
class Core:
    """A core as an image sees it. `vlen_bits` is 0 without a vector unit."""

    name: str
    vlen_bits: int
    local_bytes: int = LOCAL_BYTES

    @property
    def extensions(self) -> frozenset[str]:
        """Extensions by name, those that only state a vector length apart."""
        return frozenset(BARE_EXTENSIONS + (VECTOR_EXTENSIONS if self.vlen_bits else ()))


def core_of(cfg: Config) -> Core:
    """A core of a configuration: each of its lanes is a partition. FirmwareError if that has none."""
    if not cfg.gpsimd.enabled:
        raise FirmwareError(f"configuration {cfg.name} has no GPSIMD cores: gpsimd.enabled is false")
    lanes = cfg.partitions // cores(cfg.partitions)
    return Core(
        name=cfg.name, vlen_bits=LANE_BITS * lanes if cfg.gpsimd.vectors else 0, local_bytes=cfg.gpsimd.local_bytes
    )


def need_fit(image: Image, core: Core) -> None:
    """FirmwareError if the core cannot run the image: an extension, a vector length, memory."""
    if image.arch is not None:
        for name in sorted(image.arch.extensions - core.extensions):
            if re.fullmatch(r"zvl\d+b", name) and core.vlen_bits:
                continue
            raise FirmwareError(
                f"{image.path} needs extension {name}, and a core of {core.name} has "
                f"{', '.join(sorted(core.extensions))}" + (_WITH_VECTORS if name in VECTOR_EXTENSIONS else "")
            )
        if image.arch.vlen_bits > core.vlen_bits:
            raise FirmwareError(
                f"{image.path} is built for vectors of at least {image.arch.vlen_bits} bits "
                f"(zvl{image.arch.vlen_bits}b), and a core of {core.name} has VLEN {core.vlen_bits}: "
                "build it with zvl128b"
            )
    used = image.end - image.base
    if used > core.local_bytes:
        raise FirmwareError(
            f"{image.path} takes {used:,} bytes, {image.stack_bytes:,} of them stack, and local memory of a core of "
            f"{core.name} has {core.local_bytes:,}"
        )
