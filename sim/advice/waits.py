"""Rules about waiting: for each other, for instructions, for banks, for pipelines to fill."""

from collections import Counter

from sim.advice.facts import Facts
from sim.advice.rule import Finding, Rule

__all__ = ["WAIT_RULES"]

_OWN = "functions"
"""A tile of the kernel language itself: tables of the scalar engine come by way of it."""
_COMPUTE = ("tensor", "vector", "scalar")


def _single_buffered(facts: Facts, threshold: float) -> Finding | None:
    groups: Counter[str] = Counter()  # tiles whose names differ in a number are buffers of one thing
    names: dict[str, list[str]] = {}
    for tile, cycles in (facts.waited_tiles or {}).items():
        if tile != _OWN:
            stem = tile.rstrip("0123456789")
            groups[stem] += cycles
            names.setdefault(stem, []).append(tile)
    if not groups:
        return None
    stem, cycles = groups.most_common(1)[0]
    share = cycles / max(1, facts.result.cycles)
    if share < threshold:
        return None
    return Finding(
        share,
        f"another buffer beside {', '.join(sorted(names[stem])[:4])} would let it be written while it is read: "
        f"{100 * share:.0f} % of the cycles wait for its last read",
    )


def _worst(facts: Facts, *states: str) -> tuple[float, str]:
    return max((facts.share(engine, *states), engine) for engine in _COMPUTE)


def _fetch(facts: Facts, threshold: float) -> Finding | None:
    share, engine = _worst(facts, "fetch")
    if share < threshold or len(facts.instructions(engine)) <= facts.cfg.issue.queue_depth:
        return None
    near = facts.limits["hbm"] / max(1, facts.result.cycles)  # a deeper queue waits for bandwidth as well
    settings = facts.doubled("issue.queue_depth") if near < 0.75 else {}
    deeper = "a higher {issue.queue_depth} or " if settings else ""
    return Finding(
        share,
        f"{deeper}fewer, longer instructions would hide their fetch from HBM: the {engine} engine waits "
        f"{100 * share:.0f} % of the cycles for them",
        settings,
    )


def _short_instructions(facts: Facts, threshold: float) -> Finding | None:
    share, engine = _worst(facts, "fill", "drain")
    count = len(facts.instructions(engine))
    if share < threshold or count < 2:
        return None
    mean = facts.result.engines[engine].busy / count
    return Finding(
        share,
        f"fewer, longer instructions, or others behind them that do not wait, would fill the pipeline of the {engine} "
        f"engine less often: {count:,} of them are busy {mean:,.0f} cycles each",
    )


def _sbuf_banks(facts: Facts, threshold: float) -> Finding | None:
    share, engine = max((facts.share(engine, "sbuf"), engine) for engine in (*_COMPUTE, "dma"))
    settings = facts.doubled("sbuf.banks")
    if share < threshold or not settings:
        return None
    return Finding(
        share,
        f"a higher {{sbuf.banks}}, or operands in other banks, would end the refusals of SBUF: the {engine} engine "
        f"waits {100 * share:.0f} % of the cycles",
        settings,
    )


def _psum_banks(facts: Facts, threshold: float) -> Finding | None:
    share, engine = max((facts.share(engine, "psum"), engine) for engine in ("vector", "scalar"))
    if share < threshold:
        return None
    return Finding(
        share,
        "sums that are read in one bank of PSUM while others are written in another would end its refusals: the "
        f"{engine} engine waits {100 * share:.0f} % of the cycles",
    )


WAIT_RULES = (
    Rule(
        name="single-buffered",
        when="{threshold} of the path or more goes to whoever writes a tile again behind somebody else's last read, "
        "from whom nothing is wanted; of each no more than the reading took",
        threshold=0.1,
        reads=("path",),
        advice="another buffer beside that tile",
        find=_single_buffered,
    ),
    Rule(
        name="fetch",
        when="the path waits {threshold} of the cycles or more for instructions, but for those that a queue fetches "
        "first",
        threshold=0.05,
        reads=("engines.*.stall.fetch", "path"),
        advice="`issue.queue_depth` doubled, or fewer, longer instructions",
        find=_fetch,
    ),
    Rule(
        name="short-instructions",
        when="{threshold} of the path or more goes into filling and draining an engine's pipeline",
        threshold=0.1,
        reads=("engines.*.stall.fill", "engines.*.stall.drain", "path"),
        advice="fewer, longer instructions",
        find=_short_instructions,
    ),
    Rule(
        name="sbuf-banks",
        when="the path waits {threshold} of the cycles or more for SBUF",
        threshold=0.05,
        reads=("engines.*.stall.sbuf", "path"),
        advice="`sbuf.banks` doubled, or operands in other banks",
        find=_sbuf_banks,
    ),
    Rule(
        name="psum-banks",
        when="the path waits {threshold} of the cycles or more for PSUM",
        threshold=0.05,
        reads=("engines.*.stall.psum", "path"),
        advice="sums that are read in another bank than the one that is written",
        find=_psum_banks,
    ),
)
