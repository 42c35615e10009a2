"""Weights of the classes of a link, as a parameter of a run."""

from firmware.views import KernelError
from rtl.contract.link import CLASSES

__all__ = ["parse_weights"]


def parse_weights(text: str) -> tuple[int, ...]:
    """Weights of the classes in use, as in 3:1. KernelError if they are none."""
    parts = text.replace(",", ":").split(":")
    if not 1 <= len(parts) <= CLASSES or not all(p.strip().isdecimal() and 1 <= int(p) <= 64 for p in parts):
        raise KernelError(f"weights must be 1 to {CLASSES} numbers from 1 to 64 with : between them, not {text!r}")
    return tuple(int(p) for p in parts)
