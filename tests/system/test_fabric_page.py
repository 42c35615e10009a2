"""Counts in time of links and switches, and the page that shows them."""

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from sim.errors import PlexusError
from sim.page.browser import Browser
from sim.page.fabric import FIGURES, fabric_data
from sim.page.write import read_report, write_page
from sim.systems.link.run import LinkRun, parse_link, run_link
from sim.systems.quantiles import LATENCY_BINS, quantiles, told_cycles
from sim.systems.series import FILE, SAMPLES, Series, load_series, save_series, stops
from sim.systems.switch.params import SwitchRun, parse_switch
from sim.systems.switch.run import run_switch

pytestmark = pytest.mark.sim
_QUIET = Console(quiet=True)


def link(out: Path, *settings: str) -> dict[str, Any]:
    return run_link(LinkRun(params=parse_link(settings), seed=5, out=out), _QUIET)


def data(page: Path) -> dict[str, Any]:
    found = re.search(r'id="data"[^>]*>([^<]*)<', page.read_text(encoding="utf-8"))
    assert found
    return json.loads(gzip.decompress(base64.b64decode(found[1])))


@pytest.fixture(scope="module")
def links(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("links")
    link(folder / "clean", "flits=8000", "weights=3:1")
    link(folder / "torn", "flits=8000", "weights=3:1", "flit_error_rate=0.003", "kill_lane=2", "kill_at=5000")
    return folder


@pytest.fixture(scope="module")
def switch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("switch")
    settings = ("slots=6000", "warmup_slots=500", "load=0.7", "weights=3:1", "restarts=3", "flit_error_rate=0.001")
    run_switch(SwitchRun(params=parse_switch(settings), config="sw4", seed=3, out=folder), _QUIET)
    return folder


def test_samples_of_a_link_sum_to_its_report(links: Path) -> None:
    for name in ("clean", "torn"):
        report, series = read_report(links / name), load_series(links / name)
        assert series.cycle[-1] == 8000 * series.flit_cycles and len(series.cycle) == SAMPLES + 1
        assert series.payload_flits[-1] - series.payload_flits[0] == report["payload_flits"]
        assert series.refused[-1] - series.refused[0] == report["refused_flits"]
        assert series.replays[-1] - series.replays[0] == report["replays"]
        assert all((np.diff(column) >= 0).all() for column in (series.cycle, series.offered, series.delivered))
        delivered = series.delivered[-1] - series.delivered[0]
        shares = np.subtract(series.by_class[-1], series.by_class[0]) / delivered
        assert np.allclose(shares[:2], report["class_shares"], atol=1e-6)
        assert np.sum(series.latency) == delivered == report["latency_cycles"]["packets"]
    assert load_series(links / "clean").event_cycle == []
    assert load_series(links / "torn").event_kind == ["lane dies"]


def test_latency_of_a_link_is_what_waits_over_what_is_delivered(links: Path) -> None:
    """Little's law: packets under way are their rate times the time that they are."""
    series = load_series(links / "clean")
    by_cycles = np.sum(series.latency, axis=0)
    mean = by_cycles @ np.arange(len(by_cycles)) / by_cycles.sum()
    rate = (series.delivered[-1] - series.delivered[0]) / series.cycle[-1]
    assert np.mean([row[0] for row in series.waiting]) == pytest.approx(rate * mean, rel=0.02)


def test_samples_of_a_switch_sum_to_its_report(switch: Path) -> None:
    report, series = read_report(switch), load_series(switch)
    times = 4 * 6000
    assert (series.delivered[-1] - series.delivered[0]) / times == pytest.approx(report["throughput"], abs=1e-3)
    assert (series.offered[-1] - series.offered[0]) / times == pytest.approx(report["offered"], abs=1e-3)
    assert np.sum(series.latency) == report["latency_cycles"]["units"]
    assert all(len(row) == 4 for row in series.waiting) and max(map(max, series.waiting)) > 0
    assert series.event_kind == ["endpoint restarts", "port restarts", "port is taken out", "port is back"]
    out, back = series.event_cycle[2:]
    assert back - out == 300 * series.flit_cycles


def test_latencies_beyond_the_histogram_are_told_as_such() -> None:
    bins = [0] * LATENCY_BINS
    bins[10], bins[-1] = 40, 60
    assert quantiles(bins, 70_000) == {"p50": LATENCY_BINS - 1, "p99": LATENCY_BINS - 1, "max": 70_000}
    assert quantiles(bins)["max"] == LATENCY_BINS - 1 and quantiles(bins[:-1], 70_000)["max"] == 10
    assert told_cycles(LATENCY_BINS - 1) == "16,383 or more" and told_cycles(70_000) == "70,000"
    assert quantiles([0] * 4) == {"p50": 0, "p99": 0, "max": 0}


def test_a_verdict_names_what_was_refused(links: Path) -> None:
    report = read_report(links / "clean")
    assert "none lost" in fabric_data(report, None, "")["verdict"]
    switched = {**report, "workload": "switch", "units_sent": 9, "units_delivered": 5, "dropped": 4}
    switched |= {key: 0 for key in FIGURES["switch"] if key not in switched}
    switched |= {"switch": {"ports": 4}, "by_source": [], "by_output": [], "match": True, "end": "done"}
    assert fabric_data(switched, None, "")["verdict"].startswith("5 of 9 units delivered, 4 refused; none lost")
    odd = fabric_data(switched | {"match": False, "protocol_errors": 2, "dropped": 0}, None, "")
    assert odd["verdict"] == "done: 5 of 9 units delivered; 2 protocol errors"


def test_fewer_flit_times_are_fewer_samples() -> None:
    assert stops(100 * 4, 4) == [4 * n for n in range(1, 101)]
    assert stops(10_000, 4)[-1] == 10_000 and len(stops(10_000, 4)) == SAMPLES
    assert stops(2, 4) == [2]


def test_pages_of_fabrics(links: Path, switch: Path, tmp_path: Path) -> None:
    shown = data(write_page(links / "torn", links / "clean", tmp_path / "page.html"))
    assert shown["good"] and shown["classes"] == [0, 1] and shown["system"] == "link"
    assert [row[0] for row in shown["quantiles"]] == ["all", "class 0", "class 1"]
    assert ["replays", *(f"{read_report(links / name)['replays']:,}" for name in ("torn", "clean"))] in shown["other"][
        "rows"
    ]
    told = data(write_page(switch))
    assert not told["good"] and told["verdict"].startswith("unresolved: ") and len(told["byPort"]) == 4
    with pytest.raises(PlexusError, match="a run of link and one of switch have nothing to compare"):
        write_page(links / "clean", switch)


def test_without_a_series_the_page_has_its_figures(links: Path, tmp_path: Path) -> None:
    (tmp_path / "report.json").write_bytes((links / "clean" / "report.json").read_bytes())
    assert "was made by an older version" in data(write_page(tmp_path))["note"]
    (tmp_path / FILE).write_bytes(b"PK torn")
    assert "is torn" in data(write_page(tmp_path))["note"]
    (tmp_path / FILE).write_bytes((links / "torn" / FILE).read_bytes())
    told = data(write_page(tmp_path))
    assert "series.npz is of another run than the report" in told["note"] and told["series"] is None
    save_series(Series(flit_cycles=4), tmp_path)
    with np.load(tmp_path / FILE) as columns:
        old = {**columns, "format": 0}
    np.savez_compressed(tmp_path / FILE, **old)
    assert "has format 0, not 1" in data(write_page(tmp_path))["note"]


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_a_browser_shows_a_fabric(links: Path, switch: Path, browser: Browser, width: int, dark: bool) -> None:
    for folder in (links / "torn", switch):
        browser.heard.clear()
        browser.asked.clear()
        browser.open(write_page(folder), width=width, dark=dark)
        assert browser.run("document.documentElement.scrollWidth") <= width
        for chart in ("load", "latency", "classes", "waiting", "replays"):
            lines = {210} if chart == "waiting" else {210, 30}
            assert browser.hues(chart, 14, 104) >= lines, chart
        assert browser.run("$('events').innerText").count("\n") >= 1
        assert not browser.heard and not browser.asked
