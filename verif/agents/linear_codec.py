"""The golden codec of flits by tables, for benches that need thousands of flits."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from rtl.contract.link import FLIT_INFO_BYTES
from verif.golden.flit import encode

__all__ = ["coded"]


@cache
def _table() -> NDArray[np.uint8]:
    """[place, value, code byte]: codes of a flit that has only this byte; they are linear, so those of all add."""
    bits = np.zeros((FLIT_INFO_BYTES * 8, FLIT_INFO_BYTES), np.uint8)
    rows = np.arange(len(bits))
    bits[rows, rows // 8] = 1 << rows % 8
    codes = encode(bits)[:, FLIT_INFO_BYTES:].reshape(FLIT_INFO_BYTES, 8, -1)
    table = np.zeros((FLIT_INFO_BYTES, 256, codes.shape[2]), np.uint8)
    for value in range(1, 256):
        top = value.bit_length() - 1
        table[:, value] = table[:, value ^ 1 << top] ^ codes[:, top]
    return table


def coded(info: bytes) -> bytes:
    """The flit with this information."""
    codes = np.bitwise_xor.reduce(_table()[np.arange(FLIT_INFO_BYTES), np.frombuffer(info, np.uint8)], axis=0)
    return info + codes.tobytes()
