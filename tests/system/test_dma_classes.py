"""`plexus run dma -p classes=` on RTL: bits, shares beside what classes are entitled to, latencies, terminal, page."""

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from firmware.workloads import find_workload
from rtl.contract.config import named
from sim.page.browser import Browser
from sim.page.data import page_data
from sim.page.write import write_page
from sim.report.terminal import show
from sim.systems.core.run import Run, run_workload
from sim.trace.recorded import load_trace

pytestmark = pytest.mark.sim


def report_of(out: Path, *settings: str) -> dict[str, Any]:
    workload = find_workload("dma")
    params = workload.parse(settings)
    cfg = workload.configure(named("tiny"), params)
    return run_workload(Run(workload="dma", params=params, cfg=cfg, out=out), Console(quiet=True))


@pytest.mark.parametrize("strict", ["", pytest.param("strict=3", marks=pytest.mark.regress)])  # another model
def test_stores_are_shared_as_weights_say(tmp_path: Path, strict: str) -> None:
    """64 KiB or more of each class beside the others, written to HBM, as by 8 long descriptors each."""
    report = report_of(tmp_path, "classes=8:4:2:1", "direction=write", "rows=1024", *([strict] if strict else []))
    assert report["match"] is True and report["config_changes"]["dma.rings"] == 4
    rows = report["dma_classes"]
    assert [row["class"] for row in rows] == [0, 1, 2, 3]
    assert [row["bytes"] for row in rows] == [1024 * 512 + 8 * 512, *[1024 * 512] * 3]
    assert sum(row["bytes"] for row in rows) == report["hbm_bytes_written"] + 8 * 512
    assert sum(row["share"] for row in rows) == pytest.approx(1, abs=1e-3)
    for row in rows:
        assert abs(row["share"] - row["entitled"]) < 0.04, rows
        assert row["latency_cycles"]["least"] <= row["latency_cycles"]["median"] <= row["latency_cycles"]["most"]
    text = io.StringIO()
    show(report, Console(file=text, width=120))
    assert "classes of the DMA" in text.getvalue() and f"{100 * rows[2]['share']:.1f} %" in text.getvalue()
    page = page_data(report, load_trace(tmp_path), "")
    assert page["report"]["dma_classes"] == rows


def test_a_page_shows_the_classes(tmp_path: Path, browser: Browser) -> None:
    report = report_of(tmp_path, "classes=8:4:2:1", "direction=inside", "row_bytes=64", "rows=64")
    browser.heard.clear()
    browser.open(write_page(tmp_path), width=1280, dark=False)
    assert not browser.run("$('classes').hidden")
    shown = browser.run("[...$('shares').querySelectorAll('tr')].map(r => [...r.cells].map(c => c.textContent))")
    rows = [row for row in shown if row[0] in "0123"]
    assert [row[0] for row in rows] == list("0123") and len(rows[0]) == 9
    assert [row[4] for row in rows] == [f"{100 * one['share']:.1f} %" for one in report["dma_classes"]]
    assert not browser.heard


def test_one_class_has_a_row_and_no_table(tmp_path: Path) -> None:
    report = report_of(tmp_path, "rows=64", "row_bytes=64")
    (row,) = report["dma_classes"]
    assert (row["class"], row["share"], row["entitled"]) == (0, 1.0, 1.0)
    text = io.StringIO()
    show(report, Console(file=text, width=120))
    assert "classes of the DMA" not in text.getvalue()
