"""Tables of a page that are sums over a trace: cycles a line, the critical path by line, tiles."""

from collections import Counter
from typing import Any

import numpy as np

from rtl.contract.isa import Opcode, Queue
from rtl.contract.memmap import Space
from sim.trace.critical import Step
from sim.trace.instructions import ENGINE_QUEUE
from sim.trace.intervals import STATES
from sim.trace.occupancy import held
from sim.trace.recorded import NEVER, Recorded
from sim.trace.rings import ring_name

__all__ = ["by_line_and_opcode", "line_rows", "path_rows", "tile_rows"]

_ENGINE_OF = {queue: engine for engine, queue in ENGINE_QUEUE.items()}


def _lines(recorded: Recorded) -> list[str]:
    return [str(text) for text in recorded.texts]


def line_rows(recorded: Recorded, spent: np.ndarray) -> list[list[Any]]:
    """(line, engine, instructions, busy cycles, cycles its engine waited for it, mostly why), most cycles first."""
    texts = _lines(recorded)
    rows: list[list[Any]] = []
    for engine, queue in ENGINE_QUEUE.items():
        items = recorded.items_of(queue)
        for line in np.unique(recorded.item_line_text[items]).tolist():
            mine = items[recorded.item_line_text[items] == line]
            cycles = spent[mine].sum(axis=0)
            waits = cycles[2:]
            why = STATES[engine][2 + int(waits.argmax())] if waits.any() else ""
            rows.append([texts[line], engine.name.lower(), len(mine), int(cycles[0]), int(waits.sum()), why])
    return sorted(rows, key=lambda row: -(row[3] + row[4]))


def path_rows(recorded: Recorded, path: list[Step]) -> list[list[Any]]:
    """(cycles, engine or ring, what, line) of the critical path, most cycles first; they sum to the run."""
    texts = _lines(recorded)
    found: Counter[tuple[str, str, str]] = Counter()
    for step in path:
        who = line = ""
        if step.item != NEVER:
            who = Queue(int(recorded.item_queue[step.item])).name.lower()
            line = texts[recorded.item_line_text[step.item]]
            what = Opcode(int(recorded.item_opcode[step.item])).name.lower()
        elif step.copy != NEVER:
            who = ring_name(int(recorded.copy_ring[step.copy]))
            line = texts[recorded.copy_line_text[step.copy]]
            what = "copy"
        else:
            what = ""
        found[who, f"{step.cause} {what}".strip(), line] += step.end - step.begin
    return [[cycles, *key] for key, cycles in found.most_common()]


def tile_rows(recorded: Recorded) -> list[dict[str, Any]]:
    """Each tile that held something: bytes over all partitions, how often it was filled, cycles it was held."""
    spans = held(recorded)
    rows: list[dict[str, Any]] = []
    for tile in np.unique(spans["tile"]).tolist():
        mine = spans[spans["tile"] == tile]
        rows.append(
            {
                "name": recorded.text(int(recorded.tile_text[tile])),
                "space": Space(int(recorded.tile_space[tile])).name.lower(),
                "bytes": int(recorded.tile_bytes[tile]) * int(recorded.tile_partitions[tile]),
                "times": len(mine),
                "cycles": int((mine["end"] - mine["begin"]).sum()),
            }
        )
    return sorted(rows, key=lambda row: -row["bytes"] * row["cycles"])


def by_line_and_opcode(recorded: Recorded, spent: np.ndarray) -> dict[tuple[str, str], tuple[int, int]]:
    """(engine cycles, instructions) of each line and opcode, what an engine waits for included."""
    texts = _lines(recorded)
    cycles = spent.sum(axis=1)
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for n, (line, opcode) in enumerate(
        zip(recorded.item_line_text.tolist(), recorded.item_opcode.tolist(), strict=True)
    ):
        key = texts[line], Opcode(opcode).name.lower()
        before = found.get(key, (0, 0))
        found[key] = before[0] + int(cycles[n]), before[1] + 1
    return found
