"""Values of semaphores, and values that differ from one in little."""

from typing import Any

__all__ = ["any_value", "value_beside"]

_LEAST, _MOST = -(1 << 31), (1 << 31) - 1


def any_value(rng: Any) -> int:
    """Of a semaphore or of what is waited for: small, or near a power of two, or any."""
    kind = rng.random()
    if kind < 0.5:
        return int(rng.integers(-6, 7))
    if kind < 0.8:
        power = 1 << int(rng.integers(31))
        return int(rng.choice((-1, 1))) * power + int(rng.integers(-1, 1))
    return int(rng.integers(_LEAST, _MOST, endpoint=True))


def value_beside(rng: Any, value: int) -> int:
    """The value itself, the next one on either side, or one that differs in a bit."""
    kind = int(rng.integers(4))
    if kind < 3:
        return min(max(value + kind - 1, _LEAST), _MOST)
    other = (value ^ (1 << int(rng.integers(32)))) & 0xFFFFFFFF
    return other - (other >> 31 << 32)
