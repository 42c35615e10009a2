"""The page of real runs: what it holds without a browser, and what it does in one."""

import base64
import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from firmware.image import build_image
from firmware.workloads import find_workload
from rtl.contract.config import named
from rtl.contract.isa import Opcode
from sim.errors import PlexusError
from sim.page.browser import Browser
from sim.page.perfetto import write_perfetto
from sim.page.write import read_report, write_page
from sim.systems.core.run import run_workload
from sim.systems.core.verilated import VerilatedDevice, build_core
from sim.systems.registry import system_of_workload
from sim.systems.system import Asked
from sim.trace.agreement import TraceError, need_agreement
from sim.trace.cores import core_intervals
from sim.trace.critical import critical_path, semaphore_edges
from sim.trace.instructions import attributed
from sim.trace.recorded import load_trace
from sim.trace.recording import record

pytestmark = pytest.mark.sim

_RUNS = {
    "gemm": ("m=64", "k=64", "n=64"),
    "attention": ("heads=1", "seq=32", "head=8"),
    "dma": ("direction=both", "row_bytes=64"),
    "softmax": ("columns=64",),
    "gpsimd": ("program=iota", "columns=8"),
}
_QUIET = Console(quiet=True)


def _run(workload: str, params: tuple[str, ...], out: Path, **more: Any) -> dict[str, Any]:
    asked = Asked(workload=workload, params=params, config="tiny", out=out, **more)
    run: Any = system_of_workload(workload).resolve(asked)
    return run_workload(run, _QUIET)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("runs")
    for workload, params in _RUNS.items():
        _run(workload, params, folder / workload)
    return {workload: folder / workload for workload in _RUNS}


@pytest.mark.parametrize("workload", _RUNS)
def test_every_cycle_is_told_once(runs: dict[str, Path], workload: str) -> None:
    """Of the path and of the engines; that the trace agrees with the counters is checked in every run."""
    report, recorded = read_report(runs[workload]), load_trace(runs[workload])
    path = critical_path(recorded)
    assert [step.begin for step in path] == [0, *(step.end for step in path[:-1])]
    assert path[-1].end == report["cycles"] == sum(step.end - step.begin for step in path)
    spent = attributed(recorded).sum(axis=0)
    fed = [engine for name, engine in report["engines"].items() if name != "dma"]
    assert spent[0] == sum(engine["busy"] for engine in fed)
    assert spent.sum() >= sum(engine["busy"] + engine["stall"]["semaphore"] for engine in fed)


def test_no_trace_leaves_none(runs: dict[str, Path], tmp_path: Path) -> None:
    _run("gemm", _RUNS["gemm"], tmp_path)
    assert (tmp_path / "trace.npz").exists()
    with_trace = read_report(tmp_path)["cycles"]
    _run("gemm", _RUNS["gemm"], tmp_path, trace=False)
    assert not (tmp_path / "trace.npz").exists() and read_report(tmp_path)["cycles"] == with_trace
    page = write_page(tmp_path)
    assert "made with --no-trace" in _data(page)
    _run("gemm", _RUNS["gemm"], tmp_path)
    assert not page.exists(), "the page of an earlier run stays"


def _data(page: Path) -> str:
    """What the page's script is given."""
    text = page.read_text(encoding="utf-8")
    packed = text.partition('type="application/octet-stream">')[2].partition("<")[0]
    return gzip.decompress(base64.b64decode(packed)).decode()


def test_a_page_asks_for_nothing_and_wrong_folders_get_a_sentence(runs: dict[str, Path], tmp_path: Path) -> None:
    page = write_page(runs["gemm"], runs["softmax"], tmp_path / "two.html")
    text = page.read_text(encoding="utf-8")
    assert "http" not in text.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
    assert "The workloads are unlike, gemm and softmax" in _data(page)
    with pytest.raises(PlexusError, match=r"has no report\.json"):
        write_page(tmp_path)
    with pytest.raises(PlexusError, match="cannot be written"):
        write_page(runs["gemm"], target=tmp_path / "nowhere" / "x.html")
    (tmp_path / "report.json").write_text("{")
    with pytest.raises(PlexusError, match="is torn"):
        write_page(tmp_path)
    (tmp_path / "report.json").write_text('{"workload": "chip"}')
    with pytest.raises(PlexusError, match="only these have a page"):
        write_page(tmp_path)


def test_own_script_is_small() -> None:
    scripts = (Path(__file__).resolve().parents[2] / "sim" / "page").glob("*.js")
    assert sum(script.stat().st_size for script in scripts) <= 40_000


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_a_browser_paints_zooms_finds_and_hovers(
    runs: dict[str, Path], browser: Browser, width: int, dark: bool
) -> None:
    browser.heard.clear()
    browser.asked.clear()
    browser.open(write_page(runs["gemm"]), width=width, dark=dark)
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.colours("lanes") > 5
    cycles = read_report(runs["gemm"])["cycles"]
    assert browser.run("[timeline.from, timeline.to]") == [0, cycles]
    box = browser.run(
        "(() => { const r = $('lanes').getBoundingClientRect(); return [r.x, r.y, r.width, r.height]; })()"
    )
    x, y = box[0] + box[2] * 0.6, box[1] + 30
    browser.call("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=-800)
    first, last = browser.run("[timeline.from, timeline.to]")
    assert 0 < first < last < cycles and last - first < cycles / 2
    browser.run("timeline.pan(50)")
    assert np.isclose(browser.run("timeline.from"), first + 50)
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    assert "tensor" in browser.run("$('tip').hidden ? '' : $('tip').textContent")
    browser.run("$('find').value = 'multiply'; $('find').oninput({target: $('find')})")
    trace = load_trace(runs["gemm"])
    assert browser.run("timeline.found.size") == int((trace.item_opcode == Opcode.MULTIPLY_MOVING).sum())
    semaphores = browser.run("timeline.lanes.filter(l => l.kind === 'semaphore').map(l => [l.semaphore, l.b.length])")
    moves = np.concatenate([trace.item_update, trace.copy_signal])
    assert semaphores == [[s, int((moves == s).sum())] for s in sorted({*moves.tolist()} - {-1})]
    used = browser.run("busy(timeline.d.engines.tensor, timeline.d.recorded, timeline.d.cycles, 50)")
    busy = read_report(runs["gemm"])["engines"]["tensor"]["busy"]
    assert np.isclose(sum(used) / 50 / 100 * cycles, busy)
    assert browser.run("$('path').innerText").startswith("cycles")
    assert not browser.heard and not browser.asked


def test_a_browser_shows_what_each_gpsimd_core_did(runs: dict[str, Path], browser: Browser) -> None:
    browser.heard.clear()
    browser.open(write_page(runs["gpsimd"]), width=1280, dark=False)
    recorded = load_trace(runs["gpsimd"])
    lanes = browser.run("timeline.lanes.filter(l => /^gp\\d$/.test(l.name)).map(l => [l.name, l.b.length, l.e.at(-1)])")
    assert lanes == [[f"gp{n}", len(core_intervals(recorded, n)), recorded.cycles] for n in range(2)]
    top = browser.run("(() => { const l = timeline.lanes.find(l => l.name === 'gp1'); return l.y + l.height / 2; })()")
    first = int(core_intervals(recorded, 1)["begin"][1])
    browser.run(f"timeline.show({first}, {first} + 40)")
    browser.run("timeline.draw()")
    browser.run(f"timeline.hover({{offsetX: timeline.left + 2, offsetY: {top}, clientX: 9, clientY: 9}})")
    assert browser.run("$('tip').textContent").startswith("gp1: fetch")
    browser.run("$('find').value = 'iota'; $('find').oninput({target: $('find')})")
    found = browser.run("[...timeline.found].map(key => instruction(timeline.d, +key.slice(1)))")
    assert len(found) == 1 and found[0].endswith("gp_run iota")
    assert not browser.heard


def test_a_full_trace_goes_on_in_sums() -> None:
    """Few records: what follows is in buckets, and all of it still agrees with every counter."""
    cfg = named("tiny")
    program = find_workload("gemm").build(cfg, {"m": 128, "k": 64, "n": 128}, seed=0)
    with VerilatedDevice(cfg, build_core(cfg).binary, trace_records=500) as device:
        device.load(build_image(program))
        result = device.run()
    assert result.trace is not None and result.hbm is not None
    recorded = record(result.trace, result.retired, program)
    assert 0 < recorded.coarse_from < recorded.cycles == result.cycles and recorded.lost
    assert len(recorded.coarse) == -(-(recorded.cycles - recorded.coarse_from) // 4096)
    need_agreement(recorded, result, (result.hbm.read_beats, result.hbm.write_beats))
    with pytest.raises(TraceError, match="beats written to HBM"):
        need_agreement(recorded, result, (result.hbm.read_beats, result.hbm.write_beats + 1))
    path = critical_path(recorded)
    assert path[0].begin == 0 and path[-1].end == result.cycles


@pytest.mark.parametrize("workload", _RUNS)
def test_perfetto_says_what_the_report_says(runs: dict[str, Path], workload: str, tmp_path: Path) -> None:
    folder = runs[workload]
    report, recorded = read_report(folder), load_trace(folder)
    write_perfetto(report, recorded, tmp_path / "run.json.gz")
    events = json.loads(gzip.decompress((tmp_path / "run.json.gz").read_bytes()))["traceEvents"]
    tracks = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    cycles: Counter[tuple[str, str]] = Counter()
    ends: dict[int, float] = {}
    for event in events:
        assert event["ph"] in "MXbeCsf" and event["pid"] == 1 and event["ts"] >= 0
        if event["ph"] == "X":
            assert event["dur"] > 0 and event["ts"] >= ends.get(event["tid"], 0) - 1e-9, "slices of a track overlap"
            ends[event["tid"]] = event["ts"] + event["dur"]
            cycles[tracks[event["tid"]], event["name"]] += event["args"]["cycles"]
    for name, engine in report["engines"].items():
        told = {"busy": engine["busy"], "idle": engine["idle"], **engine["stall"]}
        assert {state: cycles[f"engine {name}", state] for state in told} == told
    for n, core in enumerate(report["gpsimd_cores"]):  # a GPSIMD cycle is two, the run may begin or end within one
        told = {"busy": core["busy"], "idle": core["idle"], **core["stall"]}
        assert all(abs(cycles[f"core gp{n}", state] - 2 * count) <= 2 for state, count in told.items())
    assert len([name for name in tracks.values() if name.startswith("core gp")]) == len(report["gpsimd_cores"])
    queued = [e for e in events if e["ph"] == "X" and tracks[e["tid"]].startswith("queue ")]
    assert len(queued) == report["instructions_retired"]
    begun, ended = ([e["id"] for e in events if e["ph"] == ph] for ph in "be")
    assert sorted(begun) == sorted(ended) == list(range(len(recorded.copy_ring)))
    flows = [sorted(e["id"] for e in events if e["ph"] == ph) for ph in "sf"]
    assert flows[0] == flows[1] and len(flows[0]) == len(list(semaphore_edges(recorded)))
    read = sum(e["args"]["read"] for e in events if e["name"].startswith("HBM"))
    assert read == int(recorded.beats[:, 0].sum()) * report["config_resolved"]["hbm"]["port_bytes"]
    with pytest.raises(PlexusError, match="cannot be written"):
        write_perfetto(report, recorded, tmp_path / "nowhere" / "run.json.gz")


def test_a_run_that_breaks_off_agrees_too() -> None:
    """The limit of cycles ends it in the middle: instructions issued and not retired, counters stopped by the host."""
    cfg = named("tiny")
    program = find_workload("gemm").build(cfg, {"m": 128, "k": 64, "n": 128}, seed=0)
    with VerilatedDevice(cfg, build_core(cfg).binary, max_cycles=3000, trace_records=1 << 20) as device:
        device.load(build_image(program))
        result = device.run()
    assert result.end == "limit" and result.trace is not None and result.hbm is not None
    recorded = record(result.trace, result.retired, program)
    need_agreement(recorded, result, (result.hbm.read_beats, result.hbm.write_beats))
    under_way = (recorded.item_issue >= 0) & (recorded.item_retire < 0)
    assert under_way.any() and (recorded.item_issue < 0).any()
    path = critical_path(recorded)
    assert path[0].begin == 0 and path[-1].end == result.cycles
