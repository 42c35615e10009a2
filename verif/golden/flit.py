"""Codes of a flit on whole arrays: what encoder and decoder of a port must do.

CRC by long division, FEC by sums over logarithms; the receiver repairs first and then divides again.
Source: the codes as docs/flit-codec.md defines them; the public description of PCI Express 6 flit mode.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rtl.contract.link import (
    CRC_AT,
    CRC_BYTES,
    CRC_FIRST_ROOT,
    CRC_ORDER,
    CRC_POLYNOMIAL,
    FEC_AT,
    FEC_GROUPS,
    FEC_POLYNOMIAL,
    FEC_SPAN,
    FLIT_BYTES,
    FLIT_INFO_BYTES,
)

__all__ = ["Decoded", "crc", "decode", "encode", "fec"]

Bytes = NDArray[np.uint8]


def _tables(polynomial: int) -> tuple[NDArray[np.int64], Bytes]:
    """Logarithms (of 0: -1) and powers of alpha = 2 of a field, the powers twice over."""
    log, power = np.full(256, -1, np.int64), np.zeros(510, np.uint8)
    value = 1
    for n in range(255):
        log[value], power[n], power[n + 255] = n, value, value
        value = value * 2 if value < 128 else (value * 2) ^ polynomial
    return log, power


_CRC_LOG, _CRC_POWER = _tables(CRC_POLYNOMIAL)
_FEC_LOG, _FEC_POWER = _tables(FEC_POLYNOMIAL)


def _times(values: Bytes, exponent: NDArray[np.int64] | int, log: NDArray[np.int64], power: Bytes) -> Bytes:
    """values * alpha^exponent."""
    return np.where(values == 0, 0, power[(log[values] + exponent) % 255]).astype(np.uint8)


def _generator() -> list[int]:
    """Coefficients of g from x^7 down to x^0; that of x^8 is 1."""
    g = [1]
    for i in range(CRC_FIRST_ROOT, CRC_FIRST_ROOT + CRC_BYTES):
        shifted = np.array([*g, 0], np.uint8)
        g = [int(c) for c in shifted ^ _times(np.array([0, *g], np.uint8), i, _CRC_LOG, _CRC_POWER)]
    return g[1:]


_GENERATOR = [(int(_CRC_LOG[c])) for c in _generator()]  # logarithms: no coefficient is 0


def crc(info: Bytes, order: str = CRC_ORDER) -> Bytes:
    """CRC bytes [n, 8] of information [n, 242]."""
    rest = np.zeros((len(info), CRC_BYTES), np.uint8)
    for column in info.T:
        top = rest[:, 0] ^ column
        rest = np.concatenate([rest[:, 1:], np.zeros((len(info), 1), np.uint8)], axis=1)
        for k, log in enumerate(_GENERATOR):
            rest[:, k] ^= _times(top, log, _CRC_LOG, _CRC_POWER)
    return rest if order == "high_first" else rest[:, ::-1]


def fec(protected: Bytes) -> tuple[Bytes, Bytes]:
    """Check and parity bytes, each [n, group], of bytes 0 to 249 [n, 250]."""
    check, parity = np.zeros((2, len(protected), FEC_GROUPS), np.uint8)
    for group in range(FEC_GROUPS):
        mine = protected[:, group::FEC_GROUPS]
        weight = FEC_SPAN - np.arange(mine.shape[1])
        parity[:, group] = np.bitwise_xor.reduce(mine, axis=1)
        check[:, group] = np.bitwise_xor.reduce(_times(mine, weight, _FEC_LOG, _FEC_POWER), axis=1)
    return check, parity


def _fec_places(group: int) -> tuple[int, int]:
    """Where the check and the parity byte of a group stand in a flit."""
    first = next(byte for byte in range(FEC_AT, FLIT_BYTES) if byte % FEC_GROUPS == group)
    return first, first + FEC_GROUPS


def encode(info: Bytes, order: str = CRC_ORDER) -> Bytes:
    """Flits [n, 256] with information [n, 242]."""
    flits = np.zeros((len(info), FLIT_BYTES), np.uint8)
    flits[:, :FLIT_INFO_BYTES] = info
    flits[:, CRC_AT:FEC_AT] = crc(info, order)
    check, parity = fec(flits[:, :FEC_AT])
    for group in range(FEC_GROUPS):
        at_check, at_parity = _fec_places(group)
        flits[:, at_check], flits[:, at_parity] = check[:, group], parity[:, group]
    return flits


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """What a receiver makes of n flits."""

    flits: Bytes  # [n, 256]: repaired if valid, else as received
    valid: NDArray[np.bool_]  # [n]
    corrected: NDArray[np.int64]  # [n]: groups repaired; 0 if not valid
    located: NDArray[np.bool_]  # [n, group]: a wrong byte was found, in flits that are not valid too
    byte: NDArray[np.int64]  # [n, group]: which; 0 if none
    hopeless: NDArray[np.bool_]  # [n, group]: wrong, and no single byte explains it


def decode(flits: Bytes, order: str = CRC_ORDER) -> Decoded:
    """Repair, then check. `flits` [n, 256] stay as they are."""
    fixed = flits.copy()
    n = len(flits)
    every = np.arange(n)
    check, parity = fec(flits[:, :FEC_AT])
    located, hopeless = np.zeros((2, n, FEC_GROUPS), np.bool_)
    byte = np.zeros((n, FEC_GROUPS), np.int64)
    for group in range(FEC_GROUPS):
        at_check, at_parity = _fec_places(group)
        sc, sp = check[:, group] ^ flits[:, at_check], parity[:, group] ^ flits[:, at_parity]
        place = FEC_SPAN - (_FEC_LOG[sc] - _FEC_LOG[sp]) % 255
        inside = (place >= 0) & (place < len(range(group, FEC_AT, FEC_GROUPS)))
        in_data, in_check, in_parity = (sc > 0) & (sp > 0), (sc > 0) & (sp == 0), (sc == 0) & (sp > 0)
        hopeless[:, group] = in_data & ~inside
        located[:, group] = (in_data & inside) | in_check | in_parity
        byte[:, group] = np.select([in_check, in_parity], [at_check, at_parity], group + FEC_GROUPS * place)
        error = np.where(in_check, sc, sp)
        hit = located[:, group]
        fixed[every[hit], byte[hit, group]] ^= error[hit]
    same = (crc(fixed[:, :FLIT_INFO_BYTES], order) == fixed[:, CRC_AT:FEC_AT]).all(axis=1)
    valid = same & ~hopeless.any(axis=1)
    return Decoded(
        flits=np.where(valid[:, None], fixed, flits),
        valid=valid,
        corrected=np.where(valid, located.sum(axis=1), 0),
        located=located,
        byte=np.where(located, byte, 0),
        hopeless=hopeless,
    )
