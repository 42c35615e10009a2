"""Random descriptors that the golden model refuses."""

from collections.abc import Iterator

import numpy as np

from rtl.contract.config import Config
from rtl.contract.descriptor import DmaAdd
from rtl.contract.isa import Cause
from rtl.contract.memmap import PARTITION_STRIDE_BYTES, Space, address
from verif.benches.dma.descriptors import KINDS, random_descriptor
from verif.golden.dma import check

__all__ = ["bad_descriptor", "misaligned_sums"]


def bad_descriptor(rng: np.random.Generator, cfg: Config, number: int, *, link: bool) -> dict[str, int]:
    """A descriptor with one thing wrong, another for each `number`; `link`: others' cores can be reached."""
    d = random_descriptor(rng, cfg, str(rng.choice(KINDS)), 1)
    elsewhere = int(rng.integers(1, 1 << 18))
    capacity = cfg.hbm.capacity_mib << 20
    steps = [f"{side}_step{n}" for side in ("source", "destination") for n in range(3)]
    whole = {"add": 3, "row_bytes": 4, "destination": address(Space.SBUF, 64), **dict.fromkeys(steps, 0)}
    to_sbuf = d["destination"] >> 40 == Space.SBUF
    choices: list[dict[str, int]] = [
        {"row_bytes": 0},
        {"row_bytes": (1 << 18) + int(rng.integers(1, 1000))},
        {f"count{rng.integers(3)}": 0},
        {"index": 1 << int(rng.integers(23))},
        {"table_rows": 1 << int(rng.integers(28))},
        {"signal_update": int(rng.integers(3, 16))},
        {"class_": int(rng.integers(cfg.dma.classes, 8))},
        whole | {"source": elsewhere << 44},
        {"add": int(rng.integers(1, 4))},  # to HBM, or misaligned
        {"source": d["source"] | 1 << 63},
        {"source": d["source"] | elsewhere << 44},
        {"source": d["source"] | elsewhere << 44, "destination": d["destination"] | elsewhere << 44},
        {"destination": d["destination"] | elsewhere << 44},
        {"source": address(Space(int(rng.integers(2, 6))), 64)},
        {"destination": address(Space(int(rng.integers(2, 6))), 64)},
        {"source": address(Space.HBM, capacity - int(rng.integers(0, d["row_bytes"])))},
        {"count2": 7, "source_step2": -(1 << 47)},
        {"count1": 0xFFFFFFFF, "destination_step1": int(rng.integers(1, 1 << 20))},
        {"destination": address(Space.SBUF, cfg.partitions * PARTITION_STRIDE_BYTES)},
        {"destination": address(Space.SBUF, cfg.sbuf.partition_bytes - d["row_bytes"] + 1)},
        {"signal_update": 1, "signal_address": address(Space.SEMAPHORES, 4 * cfg.issue.semaphores)},
        {"signal_update": 2, "signal_address": address(Space.SEMAPHORES, 4 * int(rng.integers(64)) + 2)},
        {"signal_update": 1, "signal_address": address(Space.SBUF, 4)},
        {"signal_update": 1, "signal_address": address(Space.SEMAPHORES, 4, core_id=elsewhere)},
    ]
    if to_sbuf:
        choices.append({"count0": 2, "destination_step0": cfg.partitions * PARTITION_STRIDE_BYTES})
    changed = {**d, **choices[number % len(choices)]}
    if check(changed, cfg, link=link)[0] != Cause.NONE:
        return changed
    return bad_descriptor(rng, cfg, int(rng.integers(len(choices))), link=link)


def misaligned_sums(cfg: Config) -> Iterator[tuple[str, dict[str, int]]]:
    """A sum of each format with one bit of one number wrong, and which: addresses, length and steps of both sides."""
    steps = {f"{side}_step{n}": 64 for side in ("source", "destination") for n in range(3)}
    good = {"source": address(Space.HBM, 256), "destination": address(Space.SBUF, 256), "row_bytes": 64, **steps}
    good |= {f"count{n}": 1 for n in range(3)}
    for add in DmaAdd:
        for bit in range((add.element_bytes - 1).bit_length()):
            for name in ("source", "destination", "row_bytes", *steps):
                bad = good | {"add": int(add), name: good[name] | 1 << bit}
                assert check(bad, cfg)[0] == Cause.MISALIGNED
                yield f"{add.name}: bit {bit} of {name}", bad
