"""Random requests at the ports of SBUF."""

import numpy as np

from rtl.base.memory_port import QUADRANTS
from rtl.contract.config import Config
from rtl.contract.descriptor import DmaAdd
from verif.benches.memory.sbuf_ports import Request
from verif.benches.memory.sbuf_sums import like

__all__ = ["random_request"]


def random_request(rng: np.random.Generator, cfg: Config, kind: str, hot: int, adding: float) -> Request:
    """Anything legal of a kind of port, in the first `hot` words of a partition or at its end. `adding`: share of a
    mover's writes."""
    r = Request()
    words = cfg.sbuf.partition_bytes // 8
    if kind.startswith("mover"):
        r.lane = int(rng.integers(cfg.partitions // cfg.dma.engines))
        r.pair = int(rng.integers(hot // 2)) if rng.random() < 0.95 else words // 2 - 1
        r.data = int.from_bytes(rng.bytes(16), "little")
        r.bytes = int(rng.choice([0xFFFF, int(rng.integers(1 << 16))]))
        if kind == "mover_write" and rng.random() < adding:
            r.add = int(rng.integers(1, len(DmaAdd)))
            r.last = int(rng.random() < 0.3)
            if rng.random() < 0.5:
                r.data = like(rng, r.data, r.add)
        return r
    r.quadrants = int(rng.choice([15, int(rng.integers(1, 16))]))
    at = [int(w) for w in rng.integers(hot, size=QUADRANTS)]
    r.words = [at[0]] * QUADRANTS if rng.random() < 0.5 else at
    if rng.random() < 0.05:
        r.words = [words - 1] * QUADRANTS
    if kind == "write":
        r.data = int.from_bytes(rng.bytes(8 * cfg.partitions), "little")
        r.bytes = int(rng.choice([0xFF, 0x03, 0, int(rng.integers(256))]))
        every = (1 << cfg.partitions) - 1
        r.partitions = every if rng.random() < 0.5 else int(rng.integers(every, endpoint=True))
    return r
