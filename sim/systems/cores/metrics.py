"""What the workloads of several cores are measured by."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from firmware.cores.ensemble import Ensemble
from rtl.base.packet import BEAT_BYTES
from rtl.contract.config import Config
from rtl.contract.config_sections import DMA_CLASSES
from rtl.dma.fabric.packets import CHUNK_BYTES, SLOTS_EACH
from sim.systems.cores.joined import CoresResult

__all__ = ["METRICS", "Measured", "link_bytes_per_cycle"]


def link_bytes_per_cycle(cfg: Config, row_bytes: int = CHUNK_BYTES) -> float:
    """What the movers of a link carry each way (docs/endpoint.md) of rows of so many bytes, at most what packets of
    CHUNK_BYTES and a rest, each with a beat of header, leave of a beat of 64 bytes a cycle."""
    pieces = [CHUNK_BYTES] * (row_bytes // CHUNK_BYTES) + [row_bytes % CHUNK_BYTES] * (row_bytes % CHUNK_BYTES > 0)
    beats = sum(1 + math.ceil(piece / BEAT_BYTES) for piece in pieces)
    units = sum(math.ceil(piece / 16) for piece in pieces)
    return row_bytes / max(beats, units / cfg.dma.link_movers)


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A run and what was asked for."""

    cfg: Config
    params: Mapping[str, Any]
    ensemble: Ensemble
    result: CoresResult

    @cached_property
    def times(self) -> Mapping[str, np.ndarray]:
        """By the names of marks: cycles at which marked instructions ended; without those that never did."""
        return {name: self._ends(name) for name in self.ensemble.marks}

    def _ends(self, name: str) -> np.ndarray:
        times: list[int] = []
        for mark in self.ensemble.marks[name]:
            log = self.result.results[mark.core].retired
            hit = log["cycle"][(log["queue"] == mark.queue) & (log["sequence"] == mark.sequence)]
            times += [int(hit[0])] if len(hit) else []
        return np.array(times, np.int64)


def _period(times: np.ndarray) -> float:
    """Cycles from a tile to the next in the later half."""
    late = times[len(times) // 2 :]
    return float(late[-1] - late[0]) / (len(late) - 1) if len(late) > 1 else 0.0


def _forward(m: Measured) -> dict[str, Any]:
    """Rates of a wire in the later half of the tiles, when all places are in use."""
    cfg, p = m.cfg, m.params
    size = 4 * cfg.partitions * p["columns"]
    period = _period(m.times["added"])
    vector = 4 * cfg.partitions * cfg.vector.clock_mhz / cfg.tensor.clock_mhz
    bounds = {"link": link_bytes_per_cycle(cfg), "vector": vector, "hbm": cfg.hbm.bytes_per_cycle}
    if p["cores"] == 1:
        del bounds["link"]
    by = min(bounds, key=lambda name: bounds[name])
    return {
        "tile_bytes": size,
        "forwarded_bytes": size * p["tiles"] * (p["cores"] - 1),
        "cycles_per_tile": round(period, 3),
        "bytes_per_cycle": round(size / period, 3) if period else 0.0,
        "bound_bytes_per_cycle": round(float(bounds[by]), 3),
        "bound_by": by,
    }


def _ping_pong(m: Measured) -> dict[str, Any]:
    """From the wait for a signal that ends in one core to the one in the other: half a round."""
    rounds = np.diff(m.times["back"])
    one_way = float(rounds.mean()) / 2 if len(rounds) else 0.0
    return {
        "signal_cycles": round(one_way, 3),
        "signal_nanoseconds": round(one_way * 1000 / m.cfg.tensor.clock_mhz, 3),
        "wire_cycles": m.params["delay"],
        "round_cycles_min": int(rounds.min()) if len(rounds) else 0,
        "round_cycles_max": int(rounds.max()) if len(rounds) else 0,
    }


def _remote(m: Measured) -> dict[str, Any]:
    """Rate one way from the arrival of the first tile to that of the last; of two ways the slower one. A place of a
    packet is in use on the way there and back, if it is read, and until HBM answers."""
    cfg, p = m.cfg, m.params
    row_bytes = p["columns"] * (2 if p["add"] == "bf16" else 4)
    size = row_bytes * cfg.partitions
    ways = 2 if p["direction"] == "both" else 1
    times = m.times["arrived"]
    flows = np.split(times, ways) if len(times) == ways * p["tiles"] else []
    took = max((int(flow[-1] - flow[0]) for flow in flows), default=0)
    reads = p["direction"] == "read"
    waits = (2 * p["delay"] if reads else 0) + (cfg.latency_cycles if p["far"] == "hbm" else 0)
    bounds = {"link": link_bytes_per_cycle(cfg, row_bytes)}
    if waits:
        places = SLOTS_EACH - (DMA_CLASSES - 1) * cfg.dma.link_movers  # of one class
        bounds["places"] = places * min(CHUNK_BYTES, row_bytes) / waits
    if "hbm" in (p["near"], p["far"]):
        bounds["hbm"] = cfg.hbm.bytes_per_cycle / ways
    by = min(bounds, key=lambda name: bounds[name])
    return {
        "tile_bytes": size,
        "moved_bytes": size * p["tiles"] * ways,
        "bytes_per_cycle": round(size * (p["tiles"] - 1) / took, 3) if took else 0.0,
        "bound_bytes_per_cycle": round(bounds[by], 3),
        "bound_by": by,
    }


def _split_attention(m: Measured) -> dict[str, Any]:
    """Products of all arrays; bytes that come to core 0, in the whole run, for no array makes more in all of it."""
    cfg, cycles, cores = m.cfg, m.result.cycles, m.params["cores"]
    copies = [copy for program in m.ensemble.programs[1:] for copy in program.copies()]
    sizes = [copy.bytes for copy in copies if copy.destination.core != copy.source.core]
    forwarded = sum(sizes)
    macs = sum(program.macs for program in m.ensemble.programs)
    peak = cores * cfg.tensor.rows * cfg.tensor.cols
    bounds = {"link": link_bytes_per_cycle(cfg), "tensor": forwarded * peak / macs}
    by = min(bounds, key=lambda name: bounds[name])
    arrived, own = m.times["arrived"], m.times["own"]
    return {
        "macs": macs,
        "tensor_utilization": round(macs / (peak * cycles), 6) if cycles else 0.0,
        "tiles_forwarded": len(sizes),
        "forwarded_bytes": forwarded,
        "cycles_per_tile": round(_period(arrived), 3) if len(arrived) == len(sizes) else None,
        "bytes_per_cycle": round(forwarded / cycles, 3) if cycles else 0.0,
        "bound_bytes_per_cycle": round(bounds[by], 3),
        "bound_by": by if sizes else None,
        "last_arrival_cycles": int(arrived[-1] - own[-1]) if len(arrived) and len(own) else 0,
        "tail_cycles": cycles - int(own[-1]) if len(own) else 0,
    }


METRICS: Mapping[str, Callable[[Measured], dict[str, Any]]] = {
    "forward": _forward,
    "ping_pong": _ping_pong,
    "remote": _remote,
    "split_attention": _split_attention,
}
"""By workload."""
