"""Intervals an instruction: when it was issued, began, ended, and what its engine's cycles meanwhile were spent on."""

import numpy as np

from rtl.contract.isa import Opcode, Queue
from rtl.contract.timing import Engine
from sim.trace.intervals import STATES, engine_intervals
from sim.trace.recorded import NEVER, Recorded

__all__ = ["ENGINE_QUEUE", "attributed", "first_beats", "pieces"]

ENGINE_QUEUE = {Engine.TENSOR: Queue.TENSOR, Engine.VECTOR: Queue.VECTOR, Engine.SCALAR: Queue.SCALAR,
                Engine.GPSIMD: Queue.GPSIMD}  # fmt: skip
"""Engines that a queue feeds."""

_WAITS = ("semaphore", "fetch", "fault")
"""States in which an engine waits for its next instruction; `idle` and these apart, it is busy with one it has."""

PIECE = np.dtype([("begin", "<i8"), ("end", "<i8"), ("state", "<i4"), ("item", "<i8")])


def _beats(recorded: Recorded, found: np.ndarray, items: np.ndarray) -> np.ndarray:
    """Busy cycles of the tensor engine by the beats of its matrix multiplications, which go in order: a load that was
    issued behind one does not get its beats. As it was if row tiles work beside each other, or the run broke off."""
    works = items[(recorded.item_opcode[items] == Opcode.MULTIPLY_MOVING) & (recorded.item_retire[items] != NEVER)]
    ends = np.cumsum(recorded.item_beats[works].astype(np.int64))
    busy = found["state"] == 0
    if not len(works) or int((found["end"] - found["begin"])[busy].sum()) != ends[-1]:
        return found
    split: list[np.ndarray] = [found[~busy]]
    own = found[busy]
    sent = np.cumsum(own["end"] - own["begin"])
    cuts = np.union1d(np.concatenate([[0], sent]), ends)
    at = np.searchsorted(sent, cuts[:-1], "right")
    shift = own["end"][at] - sent[at]
    parts = np.zeros(len(cuts) - 1, PIECE)
    parts["begin"] = cuts[:-1] + shift
    parts["end"] = cuts[1:] + shift
    parts["item"] = works[np.searchsorted(ends, cuts[:-1], "right")]
    split.append(parts)
    whole = np.concatenate(split)
    return whole[np.argsort(whole["begin"], kind="stable")]


def pieces(recorded: Recorded, engine: Engine) -> np.ndarray:
    """PIECEs of an engine without a gap from 0 to `coarse_from`: a state, and the item that it is spent on, or NEVER.

    Waiting for a semaphore, for fetch or after a fault is the next item's; idle is nobody's; all else is that of the
    item issued last, a beat of the array that of the multiplication it belongs to.
    """
    found = engine_intervals(recorded, engine)
    none = np.zeros(len(found), PIECE)
    none["begin"], none["end"], none["state"], none["item"] = found["begin"], found["end"], found["value"], NEVER
    if engine not in ENGINE_QUEUE or not len(found):
        return none
    items = recorded.items_of(ENGINE_QUEUE[engine])
    issues = recorded.item_issue[items]
    issues = issues[issues != NEVER]
    cuts = np.union1d(found["begin"], issues[issues < recorded.coarse_from] + 1)
    cuts = cuts[cuts < recorded.coarse_from]
    states = found["value"][np.searchsorted(found["begin"], cuts, "right") - 1]
    issued = np.searchsorted(issues, cuts, "left")  # an instruction is at its engine in the cycle after
    waits = np.isin(states, [STATES[engine].index(name) for name in _WAITS if name in STATES[engine]])
    number = np.where(waits, issued, issued - 1)
    whole = np.zeros(len(cuts), PIECE)
    whole["begin"], whole["end"], whole["state"] = cuts, np.append(cuts[1:], recorded.coarse_from), states
    there = (number >= 0) & (number < len(items)) & (states != STATES[engine].index("idle"))
    whole["item"] = NEVER
    whole["item"][there] = items[number[there]]
    return _beats(recorded, whole, items) if engine == Engine.TENSOR else whole


def attributed(recorded: Recorded) -> np.ndarray:
    """Cycles that each item had its engine in each state: int64 [items, 16]. With what is nobody's they sum to the
    counters."""
    table = np.zeros((len(recorded.item_queue), 16), np.int64)
    for engine in ENGINE_QUEUE:
        found = pieces(recorded, engine)
        mine = found[found["item"] != NEVER]
        np.add.at(table, (mine["item"], mine["state"]), mine["end"] - mine["begin"])
    return table


def first_beats(recorded: Recorded) -> np.ndarray:
    """The cycle in which each item first moved an element, NEVER if none did."""
    first = np.full(len(recorded.item_queue), np.iinfo(np.int64).max)
    for engine in ENGINE_QUEUE:
        found = pieces(recorded, engine)
        mine = found[(found["item"] != NEVER) & (found["state"] == 0)]
        np.minimum.at(first, mine["item"], mine["begin"])
    return np.where(first == np.iinfo(np.int64).max, NEVER, first)
