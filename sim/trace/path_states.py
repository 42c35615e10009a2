"""What the critical path was spent on: cycles by engine and state, and tiles whose next use had to wait."""

from collections import Counter
from itertools import pairwise

import numpy as np

from rtl.contract.isa import Opcode, Queue
from rtl.contract.timing import Engine
from sim.trace.critical import Step
from sim.trace.instructions import ENGINE_QUEUE
from sim.trace.intervals import STATES, engine_intervals
from sim.trace.recorded import NEVER, Recorded

__all__ = ["FIRST_FETCH", "path_states", "rewritten"]

FIRST_FETCH = "first fetch"
"""`fetch` of what a queue fetches first: no depth of the queue hides that."""

_ENGINE_OF = {queue: engine for engine, queue in ENGINE_QUEUE.items()}


def _engine(recorded: Recorded, step: Step) -> int:
    """Whose state counts in a step: the engine of the item, the DMA of a copy, else nobody's."""
    if step.item != NEVER:
        return _ENGINE_OF.get(Queue(int(recorded.item_queue[step.item])), NEVER)
    return Engine.DMA if step.copy != NEVER else NEVER


def path_states(recorded: Recorded, path: list[Step], queue_depth: int) -> dict[tuple[str, str], int]:
    """Cycles of the path by engine and its state meanwhile; ("", cause) for steps of no engine, as of the sync queue,
    ("", "coarse") for what is behind the records. They sum to the cycles of the run. `queue_depth`: so many items of a
    queue are fetched first.
    """
    found: Counter[tuple[str, str]] = Counter()
    begins = np.array([step.begin for step in path], np.int64)
    ends = np.array([step.end for step in path], np.int64)
    whose = np.array([_engine(recorded, step) for step in path], np.int64)
    first = np.array([step.item != NEVER and recorded.item_sequence[step.item] < queue_depth for step in path], bool)
    for step, engine in zip(path, whose.tolist(), strict=True):
        if engine == NEVER:
            found["", step.cause] += step.end - step.begin
    known = np.minimum(ends, recorded.coarse_from)
    found["", "coarse"] = int(np.maximum(0, ends - np.maximum(begins, recorded.coarse_from))[whose != NEVER].sum())
    for engine in Engine:
        mine = np.flatnonzero((whose == engine) & (known > begins))
        states = engine_intervals(recorded, engine)
        if not len(mine) or not len(states):
            continue
        cuts = np.union1d(np.concatenate([begins[mine], known[mine]]), states["begin"])
        step = np.searchsorted(begins[mine], cuts[:-1], "right") - 1
        inside = (step >= 0) & (cuts[:-1] < known[mine][step])
        state = states["value"][np.searchsorted(states["begin"], cuts[:-1], "right") - 1]
        cycles = np.diff(cuts)
        names = STATES[engine]
        for at in np.unique(state[inside]).tolist():
            same = inside & (state == at)
            early = same & first[mine][step]
            if names[at] == "fetch":
                found[engine.name.lower(), FIRST_FETCH] += int(cycles[early].sum())
                same &= ~early
            found[engine.name.lower(), names[at]] += int(cycles[same].sum())
    return {key: cycles for key, cycles in found.items() if cycles}


def rewritten(recorded: Recorded, path: list[Step]) -> dict[str, int]:
    """By tile: cycles of the path that went to whoever writes it again, and had to wait until somebody else, of whom
    nothing else is wanted, had read it. With another buffer they could have gone by beside that reading, so no more of
    them count than it took."""
    reads: dict[tuple[bool, int], set[int]] = {}
    writes: dict[tuple[bool, int], set[int]] = {}
    for tile, wrote, item, copy in zip(
        recorded.access_tile.tolist(),
        recorded.access_writes.tolist(),
        recorded.access_item.tolist(),
        recorded.access_copy.tolist(),
        strict=True,
    ):
        who = (True, item) if item != NEVER else (False, copy)
        (writes if wrote else reads).setdefault(who, set()).add(tile)
    found: Counter[int] = Counter()
    turns: list[tuple[tuple[bool, int], int]] = []  # who, and cycles of the path that are its own
    for step in path:
        if step.cause not in ("runs", "moves"):
            continue
        if step.item != NEVER and recorded.item_opcode[step.item] in (Opcode.DMA_TRIGGER, Opcode.DMA_COPY, Opcode.NOP):
            continue
        who = (True, step.item) if step.item != NEVER else (False, step.copy)
        cycles = step.end - step.begin + (turns.pop()[1] if turns and turns[-1][0] == who else 0)
        turns.append((who, cycles))
    for (behind, reading), (who, writing) in pairwise(turns):
        if _side(recorded, behind) == _side(recorded, who) or writes.get(behind, set()) & reads.get(who, set()):
            continue
        for tile in reads.get(behind, set()) & writes.get(who, set()):
            found[tile] += min(reading, writing)
    return {recorded.text(int(recorded.tile_text[tile])): cycles for tile, cycles in found.most_common()}


def _side(recorded: Recorded, who: tuple[bool, int]) -> int:
    """Who works in turn with itself anyway: a queue, or the DMA."""
    return int(recorded.item_queue[who[1]]) if who[0] else NEVER
