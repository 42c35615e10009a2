"""Rules about bytes on their way: HBM, its ports, the movers, descriptors and rows."""

from collections import Counter
from collections.abc import Mapping

import numpy as np

from rtl.contract.config import Config
from rtl.contract.memmap import Space
from rtl.contract.timing import DMA_ROWS_IN_FLIGHT
from sim.advice.bounding import MOVER_BYTES
from sim.advice.facts import Facts
from sim.advice.rule import Finding, Rule
from sim.trace.path_states import FIRST_FETCH

__all__ = ["MOVEMENT_RULES"]

NEAR = 0.9
"""A bound of movement that is so near the larger one takes its place when only that one is moved."""
CLEARLY = 0.75
"""What is advised brings the bound of movement below this share of what it is: less may not show in the cycles."""
_MOST_ENGINES = 16
_PORT_BURSTS = 256  # that a port of HBM has under way, one way (OUTSTANDING of sim/native/hbm.cpp)
_MOVES = ("busy", "hbm_bandwidth", "sbuf")


def _moving(facts: Facts) -> float:
    """Share of the cycles in which everything waits for bytes that are moved, not for the way."""
    return facts.share("dma", *_MOVES)


def _fetching(facts: Facts) -> float:
    """Share of the cycles in which everything waits for instructions, which come through the same ports."""
    return sum(facts.share(engine, "fetch", FIRST_FETCH) for engine in ("tensor", "vector", "scalar", "gpsimd"))


def _ways(facts: Facts, cfg: Config) -> dict[str, float]:
    """Fewest cycles of HBM and of the movers. With a trace HBM's are those of each 256 cycles in turn: what goes one
    way first and the other way then shares no port."""
    moved = sum(d.bytes for d in facts.descriptors)
    rate, width = cfg.hbm.bytes_per_cycle, cfg.hbm.ports * cfg.hbm.port_bytes
    hbm = np.maximum(facts.hbm_ways.sum(axis=1) / rate, facts.hbm_ways.max(axis=1) / width).sum()
    return {"hbm": float(hbm), "dma_port": moved / (MOVER_BYTES * cfg.dma.engines)}


def _wider_hbm(facts: Facts, cfg: Config, before: Mapping[str, int]) -> dict[str, int]:
    """The first change that lowers HBM's bound: more bandwidth, wider ports, more ports, or bandwidth with those."""
    hbm = cfg.hbm
    rate = {"hbm.bytes_per_cycle": 2 * hbm.bytes_per_cycle}
    width, ports = {"hbm.port_bytes": 2 * hbm.port_bytes}, {"hbm.ports": 2 * hbm.ports}
    now = _ways(facts, cfg)["hbm"]
    for step in (rate, width, width | rate, ports, ports | rate):
        wider = facts.changed({**before, **step})
        if wider is not None and _ways(facts, wider)["hbm"] <= NEAR * now:
            return step
    return {}


def _more_movers(cfg: Config) -> dict[str, int]:
    engines = 2 * cfg.dma.engines
    return {"dma.engines": engines} if engines <= min(_MOST_ENGINES, cfg.partitions // 2) else {}


def _widened(facts: Facts) -> tuple[dict[str, int], float]:
    """The narrowest way of the bytes doubled until their bound is clearly lower, and its share of what it was."""
    found: dict[str, int] = {}
    now = facts.cfg
    most = before = max(1, *_ways(facts, now).values())
    while most > CLEARLY * before:
        limits = _ways(facts, now)
        step = _wider_hbm(facts, now, found) if limits["hbm"] >= limits["dma_port"] else _more_movers(now)
        wider = facts.changed(found | step) if step else None
        if wider is None:
            return (found, most / before) if most <= NEAR * before else ({}, 1.0)
        found |= step
        now = wider
        most = max(1, *_ways(facts, now).values())
    return found, most / before


def _near(facts: Facts) -> float:
    """Share of the cycles that bytes need at best."""
    return max(facts.limits["hbm"], facts.limits["dma_port"]) / max(1, facts.result.cycles)


def _wider(facts: Facts, threshold: float) -> Finding | None:
    near = _near(facts)
    if facts.path is not None:
        share = _moving(facts) + _fetching(facts) if near > NEAR else _moving(facts)
    else:
        share = near if near >= 0.5 else 0.0
    if share < threshold:
        return None
    settings, left = _widened(facts)
    if not settings:
        return None
    keys = [f"{{{key}}}" for key in settings]
    listed = " and ".join([", ".join(keys[:-1]), keys[-1]] if len(keys) > 1 else keys)
    return Finding(
        share * (1 - left),
        f"more of {listed} would move the bytes faster: everything waits for them in {100 * share:.0f} % of the cycles",
        settings,
    )


def _exposed_copies(facts: Facts, threshold: float) -> Finding | None:
    share = _moving(facts)
    work = sum(facts.busy(engine) for engine in ("tensor", "vector", "scalar"))
    if facts.path is None or share < threshold or _near(facts) > 0.5 or not work:
        return None
    return Finding(
        min(share, work),
        f"copies in smaller pieces, so that work begins on the first, or earlier ones would hide the "
        f"{100 * share:.0f} % of the cycles in which everything waits for bytes",
    )


def _reread(facts: Facts, threshold: float) -> Finding | None:
    share = _moving(facts)
    if share < 0.25:
        return None
    read: Counter[str] = Counter()
    for d in facts.descriptors:
        if d.source.space == Space.HBM and d.source.tensor:
            read[d.source.tensor] += d.bytes
    again = {t: n - facts.program.tensors[t].bytes for t, n in read.items() if t in facts.program.tensors}
    most = max(again, key=lambda t: again[t], default="")
    if not most or not facts.hbm_bytes or again[most] / facts.hbm_bytes < threshold:
        return None
    times = read[most] / facts.program.tensors[most].bytes
    return Finding(
        share * again[most] / facts.hbm_bytes,
        f"tensor {most} would be read once from HBM, not {times:.3g} times, if it stayed in SBUF",
    )


def _fetched(facts: Facts, threshold: float) -> Finding | None:
    near = facts.limits["hbm"] / max(1, facts.result.cycles)
    if facts.fetched_share < threshold or near < 0.5:
        return None
    return Finding(
        near * facts.fetched_share,
        "fewer, longer instructions would relieve HBM: "
        f"{100 * facts.fetched_share:.0f} % of its bytes are instructions and descriptors",
    )


def _row_cycles(cfg: Config) -> float:
    """Cycles that a row takes at least, however short: a port is asked for one a cycle, a mover and a port have so many
    under way, and a beat of a port is moved."""
    under_way = min(DMA_ROWS_IN_FLIGHT * cfg.dma.engines, _PORT_BURSTS * cfg.hbm.ports)
    asked = max(1 / cfg.hbm.ports, cfg.latency_cycles / under_way)
    return max(asked, cfg.hbm.port_bytes / cfg.hbm.bytes_per_cycle)


def _short_rows(facts: Facts, threshold: float) -> Finding | None:
    outside = [d for d in facts.descriptors if Space.HBM in (d.source.space, d.destination.space)]
    rows, moved = sum(d.bytes // d.row_bytes for d in outside), sum(d.bytes for d in outside)
    lost = rows * _row_cycles(facts.cfg) - moved / facts.cfg.hbm.bytes_per_cycle
    share = facts.share("dma", *_MOVES, "commit", "hbm_latency")
    if share < 0.25 or lost < threshold * facts.result.cycles:
        return None
    return Finding(
        min(share, lost / facts.result.cycles),
        f"longer rows would let the DMA move more a cycle: they have {moved / rows:.3g} bytes on average, and HBM "
        f"moves {_row_cycles(facts.cfg) * facts.cfg.hbm.bytes_per_cycle:.3g} while one is asked for",
    )


def _descriptors(facts: Facts, threshold: float) -> Finding | None:
    share = facts.share("dma", "descriptor")
    if share < threshold:
        return None
    moved, count = sum(d.bytes for d in facts.descriptors), sum(1 for _ in facts.descriptors)
    return Finding(
        share,
        f"fewer, larger descriptors, or more rings of {{dma.rings}}, would hide their way: {count:,} move "
        f"{moved / max(1, count):,.0f} bytes each",
    )


def _in_flight(facts: Facts, threshold: float) -> Finding | None:
    copies = facts.path_copies
    room = facts.cfg.dma.buffer_bytes * facts.cfg.dma.engines
    large = sum(cycles for moved, cycles in copies.items() if moved > room)
    if not large or facts.cfg.dma.buffer_bytes >= MOVER_BYTES * facts.cfg.latency_cycles:
        return None
    share = facts.share("dma", "hbm_latency") * large / sum(copies.values())
    settings = facts.doubled("dma.buffer_bytes")
    if share < threshold or not settings:
        return None
    return Finding(share / 2, "more in flight, {dma.buffer_bytes}, would hide the latency of HBM", settings)


def _latency(facts: Facts, threshold: float) -> Finding | None:
    share = facts.share("dma", "hbm_latency", "commit")
    near = facts.limits["hbm"] / max(1, facts.result.cycles)  # waiting for bandwidth looks alike
    if share < threshold or near > NEAR or facts.cfg.hbm.latency_ns < 2:
        return None
    return Finding(
        share / 2,
        "larger or earlier copies, or a lower {hbm.latency_ns}, would hide the way to HBM, "
        f"{100 * share:.0f} % of the cycles",
        {"hbm.latency_ns": facts.cfg.hbm.latency_ns // 2},
    )


MOVEMENT_RULES = (
    Rule(
        name="reread",
        when="the path moves bytes in a quarter of the cycles, and what an operand is read from HBM again is "
        "{threshold} of all bytes or more",
        threshold=0.25,
        reads=("hbm_bytes_read", "path"),
        advice="that operand in SBUF as long as it is wanted",
        find=_reread,
    ),
    Rule(
        name="short-rows",
        when="rows to and from HBM are so short that asking for them takes {threshold} of the cycles or more beyond "
        "what their bytes take (a row takes a cycle of a port, a beat, `latency / (32 * dma.engines)`), and the path "
        "is a quarter of the cycles or more in the DMA",
        threshold=0.1,
        reads=("engines.dma", "path"),
        advice="longer rows",
        find=_short_rows,
    ),
    Rule(
        name="fetched-bytes",
        when="instructions and descriptors are {threshold} of HBM's bytes or more, and HBM's bound is half of the "
        "cycles",
        threshold=0.5,
        reads=("hbm_bytes_read", "bounds.hbm"),
        advice="fewer, longer instructions",
        find=_fetched,
    ),
    Rule(
        name="descriptors",
        when="the path waits {threshold} of the cycles or more for descriptors",
        threshold=0.05,
        reads=("engines.dma.stall.descriptor", "path"),
        advice="fewer, larger descriptors",
        find=_descriptors,
    ),
    Rule(
        name="exposed-copies",
        when="the path moves bytes in {threshold} of the cycles or more, which need less than half of them at "
        "best, and an engine has work",
        threshold=0.1,
        reads=("bounds.hbm", "bounds.dma_port", "path"),
        advice="copies in smaller pieces, so that work begins on the first, or earlier ones",
        find=_exposed_copies,
    ),
    Rule(
        name="wider-ways",
        when="the path moves bytes, or fetches instructions behind an HBM that is full, in {threshold} of the cycles "
        "or more, and wider ways lower the bound of HBM and the movers by a tenth or more",
        threshold=0.1,
        reads=("bounds.hbm", "bounds.dma_port", "hbm_bytes_read", "hbm_bytes_written", "path"),
        advice="`hbm.bytes_per_cycle`, `hbm.port_bytes`, `hbm.ports`, `dma.engines`, those that are near, together",
        find=_wider,
    ),
    Rule(
        name="latency",
        when="the path waits {threshold} of the cycles or more for HBM's answers, and its bound is not nine tenths of "
        "them",
        threshold=0.05,
        reads=("engines.dma.stall.hbm_latency", "engines.dma.stall.commit", "path"),
        advice="larger or earlier copies, `hbm.latency_ns` halved",
        find=_latency,
    ),
    Rule(
        name="in-flight",
        when="the path waits {threshold} of the cycles or more for HBM's answers to copies that are larger than the "
        "movers' buffers, and those hold less than a mover moves in HBM's latency",
        threshold=0.05,
        reads=("engines.dma.stall.hbm_latency", "path"),
        advice="`dma.buffer_bytes` doubled",
        find=_in_flight,
    ),
)
