"""The identity that transposes, as a tensor in HBM."""

import numpy as np

from firmware.kernel import HbmView, Kernel
from firmware.kernels.attention_blocks import identity_bits

__all__ = ["identity"]


def identity(k: Kernel) -> HbmView:
    """The identity that transposes, as large as the array, in HBM."""
    size = min(k.cfg.tensor.rows, k.cfg.tensor.cols)
    return k.hbm("identity", (size, size), "bf16", np.array(identity_bits(size), np.uint16))
