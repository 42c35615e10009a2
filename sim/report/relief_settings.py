"""Changes of the configuration that make a run take fewer cycles, as `--set` takes them, if there are any."""

from collections.abc import Mapping
from typing import Any

from firmware.program import Program
from rtl.contract.config import Config, ConfigError
from rtl.contract.config_changes import changed, merge, parsed
from rtl.contract.isa import Opcode
from sim.report.bounding import MOVER_BYTES, Bounding, bounds
from sim.run.result import RunResult

__all__ = ["CLEARLY", "NEAR", "relief_settings"]

NEAR = 0.9
"""A bound of movement that is so near the larger one takes its place when only that one is moved."""
CLEARLY = 0.75
"""What is advised brings the bound of movement below this share of what it is: less may not show in the cycles."""
_STALLED = 0.05
_DOUBLED = {"fetch": "issue.queue_depth", "sbuf": "sbuf.banks", "psum": "psum.banks"}
_MOST_ENGINES = 16


def relief_settings(
    cfg: Config, program: Program, result: RunResult, bound: Bounding, heaviest: Opcode | None
) -> list[str]:
    """`key=value` of each field to change, all together; `heaviest`: the vector engine's opcode with most cycles."""
    found: dict[str, int] = {}
    waits = bound.stall if bound.stall_share >= _STALLED else ""
    if bound.engine == "hbm" or (bound.engine == "dma" and not waits) or waits == "hbm_bandwidth":
        fetched = result.hbm_bytes_read - program.hbm_read_bytes
        if 2 * fetched <= result.hbm_bytes_read + result.hbm_bytes_written:  # else the program is to blame
            found = _movement(cfg, program, result)
    elif bound.engine == "vector":
        if heaviest == Opcode.EXP and cfg.vector.exp_rate < 4:
            found = {"vector.exp_rate": 2 * cfg.vector.exp_rate}
        else:
            found = _clock(cfg, "vector")
    elif bound.engine == "scalar":
        found = _clock(cfg, "scalar")
    elif bound.engine == "tensor" and waits in ("", "load", "drain", "fill"):
        found = _array(cfg)
    elif waits == "clock":
        found = _clock(cfg, bound.busiest)
    elif waits in _DOUBLED:
        key = _DOUBLED[waits]
        found = {key: 2 * _value(cfg, key)}
    elif bound.engine in ("latency", "dma"):
        found = _latency(cfg, program, result)
    texts = [f"{key}={value}" for key, value in found.items()]
    return texts if _allowed(cfg, texts) else []


def _value(cfg: Config, key: str) -> Any:
    section, _, name = key.partition(".")
    return getattr(getattr(cfg, section), name)


def _with(cfg: Config, texts: list[str]) -> Config:
    """The changed configuration. Errors: ConfigError."""
    changes: dict[str, Any] = {}
    for text in texts:
        merge(changes, parsed(text))
    return changed(cfg, changes, "a relief")


def _allowed(cfg: Config, texts: list[str]) -> bool:
    try:
        _with(cfg, texts)
    except ConfigError:
        return False
    return True


def _movement(cfg: Config, program: Program, result: RunResult) -> dict[str, int]:
    """The narrowest way of the bytes doubled until their bound is clearly lower: HBM's bandwidth, its ports, movers."""
    found: dict[str, int] = {}
    now = cfg
    ways = result.hbm_bytes_read, result.hbm_bytes_written
    most = before = max(_ways(bounds(now, program, sum(ways), max(ways))).values())
    while most > CLEARLY * before:
        limits = _ways(bounds(now, program, sum(ways), max(ways)))
        step = _wider_hbm(now, *ways) if limits["hbm"] >= limits["dma_port"] else _more_movers(now)
        texts = [f"{key}={value}" for key, value in (found | step).items()]
        if not step or not _allowed(cfg, texts):
            return found if most <= NEAR * before else {}
        found |= step
        now = _with(cfg, texts)
        most = max(_ways(bounds(now, program, sum(ways), max(ways))).values())
    return found


def _ways(limits: Mapping[str, int]) -> dict[str, int]:
    return {name: limits[name] for name in ("hbm", "dma_port")}


def _wider_hbm(cfg: Config, read: int, written: int) -> dict[str, int]:
    """More bandwidth; wider or more ports, if those of one direction are what is narrow."""
    hbm = cfg.hbm
    width = hbm.ports * hbm.port_bytes
    most = 2 * width
    if max(read, written) * hbm.bytes_per_cycle >= (read + written) * width:
        return {"hbm.port_bytes": 2 * hbm.port_bytes} if hbm.port_bytes < 128 else {"hbm.ports": 2 * hbm.ports}
    if hbm.bytes_per_cycle < most:
        return {"hbm.bytes_per_cycle": min(most, 2 * hbm.bytes_per_cycle)}
    if hbm.port_bytes < 128:
        return {"hbm.port_bytes": 2 * hbm.port_bytes, "hbm.bytes_per_cycle": 2 * hbm.bytes_per_cycle}
    return {"hbm.ports": 2 * hbm.ports, "hbm.bytes_per_cycle": 2 * hbm.bytes_per_cycle}


def _more_movers(cfg: Config) -> dict[str, int]:
    engines = 2 * cfg.dma.engines
    return {"dma.engines": engines} if engines <= min(_MOST_ENGINES, cfg.partitions // 2) else {}


def _clock(cfg: Config, engine: str) -> dict[str, int]:
    """A faster clock of an engine, up to that of the array, in whose cycles a run is measured."""
    key = f"{engine}.clock_mhz"
    faster = min(2 * _value(cfg, key), cfg.tensor.clock_mhz)
    return {key: faster} if faster > _value(cfg, key) else {}


def _array(cfg: Config) -> dict[str, int]:
    """A larger array, if there are partitions for it. Its clock is what cycles are counted in."""
    found = {}
    for side in ("rows", "cols"):
        size = 2 * _value(cfg, f"tensor.{side}")
        if size <= cfg.partitions:
            found[f"tensor.{side}"] = size
    return found


def _latency(cfg: Config, program: Program, result: RunResult) -> dict[str, int]:
    """Room for what is in flight, else a faster HBM, if the DMA waits for it."""
    dma = result.engines["dma"]
    waits = sum(dma.stall.get(cause, 0) for cause in ("hbm_latency", "commit"))
    if waits < _STALLED * max(1, result.cycles):
        return {}
    each = sum(d.bytes for ring in program.rings for d in ring) // cfg.dma.engines
    if cfg.dma.buffer_bytes < min(each, MOVER_BYTES * cfg.latency_cycles):
        return {"dma.buffer_bytes": 2 * cfg.dma.buffer_bytes}
    return {"hbm.latency_ns": cfg.hbm.latency_ns // 2} if cfg.hbm.latency_ns > 1 else {}
