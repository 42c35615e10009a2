"""An encoder layer of random weights, for configurations that hold no real one."""

import numpy as np

__all__ = ["random_layer"]


def random_layer(width: int, hidden: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """float32 arrays as firmware.kernels.minilm_reference.layer_values names them, results of size about 1."""
    sizes = {n: (width, width) for n in ("query", "key", "value", "output")}
    values: dict[str, np.ndarray] = {}
    for name, (out, given) in (sizes | {"up": (hidden, width), "down": (width, hidden)}).items():
        values[name] = rng.standard_normal((out, given), np.float32) / np.float32(np.sqrt(given))
        values[f"{name}_bias"] = rng.standard_normal(out, np.float32) / 4
    for number in "12":
        values[f"gain{number}"] = 1 + rng.standard_normal(width, np.float32) / 4
        values[f"shift{number}"] = rng.standard_normal(width, np.float32)
    return values
