"""Shares, rates and latencies of traffic classes, of records made by hand."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rtl.contract.config import load
from sim.report.classes import classes_of_report
from sim.trace.recorded import NEVER
from verif.golden.class_turn import entitled

CFG = load("tiny", ["dma.weights=8:4:2:1"]).dma


def rows(copies: list[tuple[int, int, int, int]], cfg: Any = CFG, coarse_from: int = 1000) -> list[dict[str, Any]]:
    """Of copies (class, begin, end, bytes), a ring a class; the trace has all before `coarse_from` of 1,000 cycles."""
    copies = sorted(copies, key=lambda one: one[0])
    rings = [[SimpleNamespace(class_=c) for c, *_ in copies if c == ring] for ring in range(4)]
    columns = [np.array(column, np.int64) for column in zip(*copies, strict=True)][1:]
    names = ("copy_begin", "copy_end", "copy_bytes")
    recorded: Any = SimpleNamespace(**dict(zip(names, columns, strict=True)), coarse_from=coarse_from, cycles=1000)
    program: Any = SimpleNamespace(copies=lambda: [d for ring in rings for d in ring])
    return classes_of_report(cfg, program, recorded)


def test_of_two_classes_beside_each_other() -> None:
    """Class 1 has 3/4 of the 100 cycles in which both are under way; class 0 goes on alone."""
    first, second = rows([(0, 0, 100, 100), (0, 50, 200, 500), (1, 0, 50, 150), (1, 20, 100, 150)])
    assert (first["bytes"], first["descriptors"], first["bytes_per_cycle"]) == (600, 2, 3.0)
    assert (second["bytes"], second["descriptors"], second["bytes_per_cycle"]) == (300, 2, 3.0)
    assert (first["share"], second["share"], first["contested_cycles"]) == (0.25, 0.75, 100)
    assert (first["entitled"], second["entitled"]) == (0.6667, 0.3333)
    assert first["latency_cycles"] == {"least": 100, "median": 125, "most": 150}


def test_what_has_not_completed_does_not_count() -> None:
    (only,) = rows([(2, 10, 30, 64), (2, 20, NEVER, 64), (3, NEVER, NEVER, 64)])
    assert (only["class"], only["bytes"], only["share"], only["entitled"]) == (2, 64, 1.0, 1.0)
    assert rows([(0, NEVER, NEVER, 64)]) == []
    assert classes_of_report(CFG, SimpleNamespace(copies=list), None) == []  # pyright: ignore[reportArgumentType]


def test_a_trace_that_was_full_tells_nothing() -> None:
    assert len(rows([(0, 0, 100, 100)])) == 1 and rows([(0, 0, 100, 100)], coarse_from=999) == []


def test_classes_one_after_the_other_share_nothing() -> None:
    found = rows([(0, 0, 10, 16), (1, 20, 30, 16)])
    assert [row["share"] for row in found] == [0.0, 0.0] and found[0]["contested_cycles"] == 0


@pytest.mark.parametrize("more", [*(f"dma.strict_class={c}" for c in (-1, 0, 2)), "dma.priority=true"])
def test_entitled_as_the_golden_turn_says(more: str) -> None:
    cfg = load("tiny", ["dma.weights=3:1:5:2", "dma.strict_cap=24", more]).dma
    found = rows([(c, 0, 100, 64) for c in range(4)], cfg)
    assert [row["entitled"] for row in found] == pytest.approx(entitled(cfg), abs=1e-4)


def test_of_the_classes_in_use_only() -> None:
    cfg = load("tiny", ["dma.weights=8:4:2:1", "dma.strict_class=3"]).dma
    assert [row["entitled"] for row in rows([(c, 0, 9, 64) for c in (1, 2)], cfg)] == [0.6667, 0.3333]
    assert [row["entitled"] for row in rows([(3, 0, 9, 64)], cfg)] == [1.0]
