"""A random kernel of QUANTIZE_MX: rows of every source, to every format, by both rules, in all slots."""

import numpy as np

from firmware.kernel import Kernel
from firmware.program import Program
from rtl.contract.config import Config
from rtl.contract.formats import MX_EMAX

__all__ = ["random_quantize"]

_RULES = ("ocp", "emax-1")


def _codes(rng: np.random.Generator, src: str, shape: tuple[int, int]) -> np.ndarray:
    """Numbers over a few binades, seldom a special one, so that most blocks have a scale."""
    near = rng.integers(0x2000, 0x5000, (shape[0], 1)) - rng.integers(0, 0x1000, shape)
    codes = np.where(rng.random(shape) < 0.003, rng.integers(0, 1 << 16, shape), near)
    codes = codes | rng.integers(0, 2, shape) << 15
    return np.where(rng.random(shape) < 0.05, codes & 0x8000, codes).astype(np.uint16)


def random_quantize(cfg: Config, seed: int) -> Program:
    """Four tensors, quantised one after the other, whose scales share a tile; each row is doubled before it is used."""
    rng = np.random.default_rng(seed)
    k = Kernel(cfg, "quantize")
    p = cfg.partitions
    columns = 4 * int(rng.integers(1, 10))
    scales = k.sbuf("scales", partitions=p, columns=columns, dtype="uint8")
    k.vector.memset(scales[:, :], 7.0)
    for slot in range(4):
        src = ("bf16", "fp16")[slot % 2]
        fmt = str(rng.choice(list(MX_EMAX)))
        data = _codes(rng, src, (p, 4 * columns))
        tile = k.sbuf(f"x{slot}", partitions=p, columns=4 * columns, dtype=src)
        k.dma(tile[:, :], k.hbm(f"in{slot}", data.shape, src, data))
        if slot == 3:  # written by the same queue before
            k.vector.tensor_scalar(tile[:, :], tile[:, :], "multiply", 2.0)
        kind, count = ("uint8", 2 * columns) if fmt == "e2m1" else (fmt, 4 * columns)
        out = k.sbuf(f"y{slot}", partitions=p, columns=count, dtype=kind)
        k.vector.quantize_mx(out[:, :], tile[:, :], scales[:, :], fmt=fmt, rule=_RULES[int(rng.integers(2))], slot=slot)
        k.dma(k.hbm(f"out{slot}", (p, count), kind), out[:, :])
    k.dma(k.hbm("out scales", (p, columns), "uint8"), scales[:, :])
    return k.program()
