"""`plexus area` at `tiny`: the command, its files, its page, an interrupt, and registers counted another way."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from rtl.contract.config import named
from rtl.emit.netlist import netlist_of
from rtl.emit.verilog import CELLS
from sim.area import design
from sim.area.design import elaborated
from sim.area.macros import MACRO_BITS
from sim.build.component import has_option, make_component
from sim.build.tops import top
from sim.cli import main
from sim.page.browser import Browser
from sim.toolchain import ROOT, activate, environment


@pytest.fixture(scope="module")
def sbuf(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The folder of what is built, cold at first, and that of the report."""
    folder = tmp_path_factory.mktemp("area")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLEXUS_BUILD", str(folder / "build"))
        assert main(["area", "sbuf", "--config", "tiny", "--jobs", "2", "--out", str(folder / "out")]) == 0
    return folder / "build", folder / "out"


def test_its_report_counts_what_is_there(sbuf: tuple[Path, Path]) -> None:
    report = json.loads((sbuf[1] / "area.json").read_text())
    cfg = named("tiny")
    assert report["total"]["ram_bits"] == cfg.partitions * cfg.sbuf.partition_bytes * 8
    (ram,) = report["macros"]
    rows = cfg.sbuf.partition_bytes // 8 // cfg.sbuf.banks
    assert (ram["depth"], ram["count"]) == (rows, 4 * cfg.sbuf.banks)  # four quadrants of two partitions
    (group,) = [unit for unit in report["units"] if unit["ram_bits"]]
    assert group["count"] == 4 and group["branches"] == {f"group_{n}": 1 for n in range(4)}
    for key in ("area_ge", "flip_flops", "ram_bits"):
        assert report["total"][key] == sum(unit[key] * unit["count"] for unit in report["units"]) > 0
        assert report["total"][key] == sum(branch[key] for branch in report["branches"])
    for unit in report["units"]:
        cells = sum(report["cells_ge"][name] * number for name, number in unit["cells"].items())
        assert unit["area_ge"] == cells and unit["flip_flops"] <= unit["described_register_bits"]
        assert unit["period_ps"] == 416.7 and unit["levels_allowed"] == 36
        assert unit["too_deep"] == (unit["levels"] > 36)


def test_the_same_again_elaborates_nothing(
    sbuf: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("PLEXUS_BUILD", str(sbuf[0]))
    monkeypatch.setattr(design, "netlist_of", lambda *a, **k: pytest.fail("it was elaborated"))
    words = ["area", "sbuf", "--config", "tiny", "--set", "hbm.latency_ns=50", "--json", "--out", str(tmp_path)]
    assert main(words) == 0  # no hardware depends on that latency
    report, before = json.loads(capsys.readouterr().out), json.loads((sbuf[1] / "area.json").read_text())
    assert report["units"] == before["units"] and report["config_hash"] != before["config_hash"]
    assert json.loads((tmp_path / "area.json").read_text()) == report


def test_a_delay_that_is_stated_decides_what_is_too_deep(
    sbuf: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PLEXUS_BUILD", str(sbuf[0]))
    assert main(["area", "sbuf", "--config", "tiny", "--level-ps", "0.5", "--all"]) == 0
    assert "too deep" not in capsys.readouterr().out
    assert main(["area", "sbuf", "--config", "tiny", "--level-ps", "40"]) == 0
    assert "units are too deep for their clock" in capsys.readouterr().out


def test_more_time_never_makes_levels_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PLEXUS_BUILD", str(tmp_path))
    words = ["area", "unpack_element", "--config", "tiny", "--level-ps", "100", "--json"]
    plain, deep = (main([*words, *more]) or json.loads(capsys.readouterr().out) for more in ([], ["--deep"]))
    (before,), (after,) = plain["units"], deep["units"]
    assert before["too_deep"] and after["levels"] <= before["levels"] and after["area_ge"] == before["area_ge"]
    assert len(list((tmp_path / "area" / "units").glob("*-deep.json"))) == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["sbf"], "'sbf' is neither a top nor a configuration"),
        (["tiny", "--config", "small"], "tiny is a configuration itself"),
        (["sbuf", "--config", "tiny", "--set", "sbuf.banks=3"], "sbuf.banks must be a power of two"),
        (["fifo", "--config", "tiny"], "fifo needs shape and depth"),
        (["sbuf", "--option", "width=3"], "no option 'width'"),
        (
            ["flit_encoder", "--option", "form=native"],
            "places plexus_native_encoder, a model in C++, which has no gates",
        ),
        (["sbuf", "--level-ps", "0"], "--level-ps"),
        (["sbuf", "--jobs", "0"], "--jobs"),
    ],
)
def test_wrong_input_gets_one_sentence(capsys: pytest.CaptureFixture[str], words: list[str], says: str) -> None:
    assert main(["area", *words]) == 2
    out, err = capsys.readouterr()
    assert not out and err.startswith("plexus: ") and err.count("\n") == 1 and says in err


COMMAND = """
import signal
import sys

# A job that a shell put in the background ignores interrupts, and its children do: a person's does not.
signal.signal(signal.SIGINT, signal.default_int_handler)
from sim.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_an_interrupt_leaves_nothing_half(tmp_path: Path) -> None:
    """And what was made before it is there: the same command goes on."""
    words = ["area", "fp32_sum", "--config", "tiny", "--out", str(tmp_path / "out")]
    command = [sys.executable, "-c", COMMAND, *words]
    own = {**environment(), "PLEXUS_BUILD": str(tmp_path / "build")}
    process = subprocess.Popen(command, cwd=ROOT, env=own, stderr=subprocess.PIPE, text=True)
    units = tmp_path / "build" / "area" / "units"
    for _ in range(3600):
        if list(units.parent.glob(".unit-*/unit.ys")) or process.poll() is not None:
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130 and err.strip().splitlines()[-1].startswith("plexus: interrupted")
    assert not list(units.parent.glob(".unit-*")) and not (tmp_path / "out").exists()
    twice = [subprocess.Popen(command, cwd=ROOT, env=own, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    told = [one.communicate(timeout=120)[0] for one in twice]  # two at once make one result
    assert [one.returncode for one in twice] == [0, 0] and told[0] == told[1] and "fp32_sum at tiny: " in told[0]
    assert len(list(units.iterdir())) == 1 and not list(units.parent.glob(".unit-*"))


def counted_by_yosys(name: str, folder: Path) -> int:
    """Register bits of a top: all flattened, nothing optimised."""
    chosen = top(name)
    activate()
    component = make_component(chosen, named("tiny"), {"form": "structural"} if has_option(chosen, "form") else {})
    netlist = netlist_of(component, name)
    (folder / "modules.il").write_text("\n".join(netlist.modules))
    (folder / "lanes.v").write_text("\n".join(netlist.wrappers))
    script = [*(f"read_verilog -sv -lib {CELLS / path.name}" for path in netlist.black_boxes), "read_rtlil modules.il"]
    script += ["read_verilog lanes.v"] if any(netlist.wrappers) else []
    kept = "t:$dff %d t:plexus_delay %d t:$mem_v2 %d"
    script += [f"hierarchy -top {name}", "proc -norom", "flatten", "memory_collect", f"delete t:* {kept}"]
    (folder / "count.ys").write_text("\n".join([*script, "write_json count.json"]) + "\n")
    subprocess.run([environment()["YOSYS"], "-q", "-s", "count.ys"], cwd=folder, env=environment(), check=True)
    cells: dict[str, Any] = json.loads((folder / "count.json").read_text())["modules"][name]["cells"]
    bits = 0
    for cell in cells.values():
        size = {key: int(value, 2) for key, value in cell["parameters"].items() if set(value) <= {"0", "1"}}
        if cell["type"] == "$dff":
            bits += len(cell["connections"]["Q"])
        elif cell["type"] == "plexus_delay":
            bits += size["WIDTH"] * size["CYCLES"]
        elif size["WR_PORTS"] and size["SIZE"] * size["WIDTH"] <= MACRO_BITS:
            bits += size["SIZE"] * size["WIDTH"]
    return bits


@pytest.mark.parametrize(
    "name", ["psum", "dma", *(pytest.param(name, marks=pytest.mark.regress) for name in ("array", "core"))]
)
def test_registers_are_as_many_as_in_the_flattened_netlist(name: str, tmp_path: Path) -> None:
    chosen = top(name)
    units = elaborated(chosen, named("tiny"), {"form": "structural"} if has_option(chosen, "form") else {})
    told = sum((unit.registers_bits + unit.delay_bits) * unit.count for unit in units)
    assert told == counted_by_yosys(name, tmp_path) > 500


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_a_browser_shows_an_area(sbuf: tuple[Path, Path], browser: Browser, width: int, dark: bool) -> None:
    browser.heard.clear()
    browser.asked.clear()
    browser.open(sbuf[1] / "area.html", width=width, dark=dark)
    assert browser.run("document.documentElement.scrollWidth") <= width
    report = json.loads((sbuf[1] / "area.json").read_text())
    assert browser.run("document.querySelectorAll('#map rect').length") > len(report["units"])
    assert browser.run("document.querySelectorAll('#units tr').length") == 1 + len(report["units"])
    browser.run("$('find').value = 'group'; $('find').oninput({target: $('find')})")
    assert browser.run("document.querySelectorAll('#units tr').length") == 2
    assert not browser.heard and not browser.asked
