"""Metrics of a kernel's own as plain values, which a report can have."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

__all__ = ["PlainMetrics"]

Metrics = Callable[[dict[str, np.ndarray]], dict[str, Any]]


class PlainMetrics:
    """A program's metrics, with values of NumPy as Python's. What they raise is in `error`, for they are computed when
    the run is over, and its outputs must not be lost."""

    def __init__(self, metrics: Metrics):
        self._metrics = metrics
        self.error: Exception | None = None

    def __call__(self, outputs: dict[str, np.ndarray]) -> dict[str, Any]:
        try:
            found = self._metrics(outputs)
            if not isinstance(found, Mapping):
                raise TypeError(f"metrics are a mapping of names to values, not {type(found).__name__}")
            return _plain("metrics", found)
        except Exception as error:
            self.error = error
            return {}


def _plain(name: str, value: Any) -> Any:
    """TypeError for what JSON has not."""
    if isinstance(value, np.ndarray):
        return _plain(name, value.tolist())
    if isinstance(value, np.generic):
        value = value.item() if value.dtype.isbuiltin == 1 else float(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(str(key), inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(name, inner) for inner in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"{name} is a {type(value).__name__}, and a report has numbers, texts, lists and mappings")
