"""Verilator's coverage.dat: a line a point, fields between the bytes 1 and 2, then how often it was hit."""

import gzip
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sim.errors import PlexusError

__all__ = ["Point", "add_up"]

_HEADER = "# SystemC::Coverage-3"


@dataclass(frozen=True, slots=True)
class Point:
    """A line, a branch or one direction of a bit. `what`: block, if, else, elsif, case, cond_then, cond_else; of a
    toggle name[bit]:0->1. `module`: as Verilator names it."""

    file: str
    line: int
    column: int
    module: str
    toggle: bool
    what: str


def _point(fields: str) -> Point:
    known = {name: value for name, _, value in (field.partition("\2") for field in fields.split("\1"))}
    kind, _, module = known["page"].partition("/")
    return Point(known["f"], int(known["l"]), int(known["n"]), module, kind == "v_toggle", known["o"])


def add_up(files: Iterable[Path]) -> Counter[Point]:
    """Hits of each point of one model over its runs, packed with gzip; points that no run has hit are there with 0.

    Errors: PlexusError for a file that is no such thing.
    """
    total: Counter[str] = Counter()
    for file in files:
        with gzip.open(file, "rt", encoding="utf-8", errors="surrogateescape") as lines:
            if next(lines, "").strip() != _HEADER:
                raise PlexusError(f"{file} does not begin with {_HEADER!r}, so it is no coverage of Verilator's")
            for line in lines:
                fields, _, hits = line.rpartition("' ")
                total[fields] += int(hits)
    points: Counter[Point] = Counter()
    for fields, hits in total.items():
        points[_point(fields.removeprefix("C '"))] += hits  # instances of one module
    return points
