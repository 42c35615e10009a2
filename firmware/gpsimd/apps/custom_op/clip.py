"""The operator of clip.cpp in a kernel."""

from pathlib import Path

from firmware.kernel import Kernel
from firmware.views import TileView

__all__ = ["clip"]


def clip(k: Kernel, image: Path, dst: TileView, x: TileView, low: int, high: int) -> None:
    """dst = x between low and high, int32, on all cores."""
    bits = (1 << 32) - 1
    k.gpsimd.run(image, "clip", src=x, dst=dst, args=(low & bits, high & bits))
