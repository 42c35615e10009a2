"""Parts of the area that need no Yosys: cells, levels, clocks, what is asked, map, tables, columns of a sweep."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.console import Console

from rtl.contract.config import ConfigError, named
from sim.area.area import summed_up
from sim.area.cells import AREA_GE, LOGIC, genlib
from sim.area.clocks import levels_in, period_ps, unit_period_ps
from sim.area.design import Use
from sim.area.levels import longest_path
from sim.area.macros import Macro, macro_of
from sim.area.result import Mapped, mapped_of
from sim.area.subject import subject_of
from sim.area.terminal import show
from sim.area.treemap import Box, squarified
from sim.area.write import write_area
from sim.build.tops import top
from sim.errors import PlexusError
from sim.explore import areas
from sim.explore.points import points_of
from sim.explore.sweep import read_sweep
from sim.explore.table import make_table
from sim.systems.configurations import by_name


def test_there_are_ten_cells_and_a_nand_is_one() -> None:
    assert len(AREA_GE) == 10 and AREA_GE["NAND2"] == 1
    assert LOGIC == {"INV": 0, "NAND2": 1, "NOR2": 1, "AND2": 1, "OR2": 1, "XOR2": 1, "XNOR2": 1, "MUX2": 1}
    assert "GATE INV 0.5 Y=!A; PIN * UNKNOWN 1 999 0 0 0 0\n" in genlib() and genlib().count("GATE") == 10


def cell(kind: str, out: int, *inputs: int) -> dict[str, Any]:
    pins = {"Q": [out], "D": [inputs[0]]} if kind == "$_DFF_P_" else {"Y": [out]}
    if kind != "$_DFF_P_":
        pins |= {pin: [net] for pin, net in zip("ABS", inputs)}
    ways = {pin: "output" if pin in "QY" else "input" for pin in pins}
    return {"type": kind, "connections": pins, "port_directions": ways}


def module(cells: dict[str, Any], names: dict[str, list[int]]) -> dict[str, Any]:
    ports = {"i": {"direction": "input", "bits": names["i"]}, "o": {"direction": "output", "bits": names["o"]}}
    return {
        "ports": ports,
        "cells": cells,
        "netnames": {name: {"bits": bits, "hide_name": int(name.startswith("$"))} for name, bits in names.items()},
    }


def test_levels_are_counted_between_registers_without_inverters() -> None:
    cells = {
        "a": cell("INV", 10, 2),
        "b": cell("NAND2", 11, 10, 3),
        "r": cell("$_DFF_P_", 12, 11),
        "c": cell("XOR2", 13, 12, 2),
        "d": cell("INV", 14, 13),
        "e": cell("MUX2", 15, 14, 12, 3),
    }
    found = longest_path(module(cells, {"i": [2, 3], "o": [15], "sum": [12], "$7": [12]}))
    assert (found.levels, found.begin, found.end) == (2, "sum", "o")
    text = json.dumps({"modules": {"dut": module(cells, {"i": [2, 3], "o": [15], "sum": [12]})}})
    mapped = mapped_of(text, "dut")
    assert mapped.flip_flops == 1 and mapped.area_ge == 6 + 2 * 0.5 + 1 + 2.5 + 2.5


def test_a_loop_and_a_cell_that_is_none_are_told() -> None:
    loop = {"a": cell("AND2", 10, 11, 2), "b": cell("OR2", 11, 10, 3)}
    with pytest.raises(ValueError, match="loop"):
        longest_path(module(loop, {"i": [2, 3], "o": [11]}))
    other = json.dumps({"modules": {"dut": module({"a": cell("$add", 10, 2)}, {"i": [2], "o": [10]})}})
    with pytest.raises(ValueError, match=r"\$add"):
        mapped_of(other, "dut")


def test_a_long_chain_needs_no_recursion() -> None:
    cells = {str(n): cell("AND2", n + 1, n, 2) for n in range(2, 5000)}
    assert longest_path(module(cells, {"i": [2], "o": [5000]})).levels == 4998


def test_levels_that_a_period_holds() -> None:
    assert [levels_in(1e6 / mhz) for mhz in (2400, 1200, 1000)] == [36, 78, 95]  # docs/area.md
    assert levels_in(20.0) == 0
    small, trn2 = named("small"), named("trn2")
    assert period_ps(small, ["tensor", "memory"]) == period_ps(small, []) == pytest.approx(416.67, abs=0.01)
    assert period_ps(small, ["vector_special"]) == period_ps(small, ["scalar"]) == pytest.approx(833.33, abs=0.01)
    assert period_ps(small, ["vector", "root"]) == pytest.approx(416.67, abs=0.01)
    # 2400 / 960 is 2.5: edges of an engine's clock are two or three edges of the root apart
    assert period_ps(trn2, ["vector"]) == pytest.approx(2 * 1e6 / trn2.tensor.clock_mhz)
    root, engine = pytest.approx(416.67, abs=0.01), pytest.approx(833.33, abs=0.01)
    for name, domain, period in (
        ("pe", "root", root),
        ("core", "root", root),
        ("exp", "root", engine),
        ("core", "vector_special", engine),
        ("vector_engine", "root", root),
    ):
        assert unit_period_ps(small, top(name), [domain]) == period
    assert period_ps(by_name()["sw4"], ["root"]) == 1000.0


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("small", None, ()), ("core", "small")),
        (("pe", None, ()), ("pe", "small")),
        (("exp", "tiny", ("partitions=16",)), ("exp", "tiny")),
        (("sw4", None, ()), ("switch", "sw4")),
        (("switch_ingress", None, ()), ("switch_ingress", "sw4")),
        (("x8", None, ()), ("port_device", "x8")),
    ],
)
def test_what_the_area_is_of(words: tuple[str, str | None, tuple[str, ...]], found: tuple[str, str]) -> None:
    subject = subject_of(*words)
    assert (subject.top, subject.cfg.name) == found
    assert subject.folder({}).name.startswith(f"{found[0]}-{found[1]}")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("smal", None, ()), "'smal' is neither a top nor a configuration"),
        (("small", "tiny", ()), "small is a configuration itself"),
        (("pe", "sw4", ()), "a core"),
        (("switch_ingress", "small", ()), "a configuration of a switch, and small is none"),
        (("absent.toml", None, ()), "absent.toml"),
        (("tiny", None, ("tensor.rws=8",)), "tensor.rws"),
    ],
)
def test_what_has_no_area(words: tuple[str, str | None, tuple[str, ...]], says: str) -> None:
    with pytest.raises((PlexusError, ConfigError), match=says):
        subject_of(*words)


def test_a_lookup_has_a_copy_for_each_reader() -> None:
    assert macro_of("plexus_lookup", {"WIDTH": 32, "DEPTH": 8, "PORTS": 5}) == (Macro(8, 32), 5)
    assert str(Macro(8, 32, 2, 1)) == "8 x 32, 2r1w" and Macro(8, 32).bits == 256


@pytest.mark.parametrize("values", [[1.0], [5.0, 3.0, 2.0, 1.0, 1.0], [100.0] + [1.0] * 20, []])
def test_a_map_is_in_proportion_and_fills_its_box(values: list[float]) -> None:
    box = Box(10, 20, 300, 100)
    found = squarified(values, box)
    for value, one in zip(values, found, strict=True):
        assert one.width * one.height == pytest.approx(value / sum(values) * 300 * 100)
        assert box.x - 1e-6 <= one.x and one.x + one.width <= box.x + box.width + 1e-6
        assert box.y - 1e-6 <= one.y and one.y + one.height <= box.y + box.height + 1e-6


def report() -> dict[str, Any]:
    def use(n: int, branches: dict[str, int]) -> tuple[Use, Mapped]:
        made = Mapped(cells={"NAND2": 10 * n, "DFF": n}, levels=30 + n, begin="a", end="b")
        about: dict[str, Any] = {"macros": {Macro(64, 32): 1}, "registers_bits": n, "delay_bits": 0, "clock_gates": 0}
        return Use(digest=f"{n:064}", name=f"unit{n}&<1>", branches=branches, domains=["root"], **about), made

    found = [use(n, {"left": n, "right": 1} if n % 2 else {"left": 1}) for n in range(1, 41)]
    about = {"top": "dut", "config": "small", "config_base": "small", "config_changes": {}, "level_ps": 9.5}
    return about | summed_up(found, lambda use: 416.67)


def test_every_table_sums_to_the_total(capsys: pytest.CaptureFixture[str]) -> None:
    found = report()
    for key in ("area_ge", "flip_flops", "ram_bits"):
        whole = sum(unit[f"total_{key}"] for unit in found["units"])
        assert found["total"][key] == whole == sum(branch[key] for branch in found["branches"])
    show(found, Console(width=160))
    text = capsys.readouterr().out
    assert "16 others" in text and f"{found['total']['area_ge']:,.0f}" in text
    assert f"{found['total']['too_deep']} of 40 units are too deep for their clock" in text
    lines = [line.split() for line in text.splitlines()]
    rows = lines[next(n for n, words in enumerate(lines) if words[:1] == ["unit"]) + 1 :][:25]
    told = [int(words[3].replace(",", "")) for words in rows]
    assert len(told) == 25 and sum(told) == found["total"]["area_ge"]
    show(found, Console(width=160), every=True)
    assert "others" not in capsys.readouterr().out


def test_files_are_written_whole(tmp_path: Path) -> None:
    found = report()
    paths = write_area(found, tmp_path / "area")
    assert json.loads(paths["report"].read_text())["total"] == found["total"]
    assert "unit7&amp;&lt;1&gt;" in paths["picture"].read_text()
    drawing = ElementTree.parse(paths["picture"]).getroot()
    assert len(drawing.findall("{http://www.w3.org/2000/svg}g")) == 40 + 20  # a rectangle a unit and part
    assert "http" not in paths["page"].read_text().replace("http-equiv", "")
    (tmp_path / "file").write_text("")
    with pytest.raises(PlexusError, match="nothing can be written in the folder"):
        write_area(found, tmp_path / "file" / "area")


SWEEP = 'format = 1\nbase = "tiny"\n{}\n[[axis]]\nfield = "vector.exp_rate"\nvalues = [1, 4]\n'
SWEEP += '[[workload]]\nname = "gemm"\nparams = {{m = 32, k = 64, n = 64}}\n'


def test_an_objective_of_area_asks_for_it(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(SWEEP.format(""))
    assert not read_sweep(path).area
    path.write_text(SWEEP.format("area = true"))
    assert read_sweep(path).area
    path.write_text(SWEEP.format('objectives = ["cycles:min", "area_ge:min"]'))
    sweep = read_sweep(path)
    assert sweep.area
    points = points_of(sweep)
    rows = {point.key: {"status": "ok", "report": {"cycles": 5}} for point in points}
    areas = {points[0].key: {"area_ge": 100.5, "area_flip_flops": 7, "area_ram_bits": 64}}
    table = make_table(points, rows, sweep.base_values, areas)
    assert table[0]["area_ge"] == 100.5 and table[0]["area_ram_bits"] == 64 and "area_ge" not in table[1]


def test_the_area_of_a_sweep_is_asked_for_once_for_equal_hardware(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "s.toml"
    axis = '\n[[axis]]\nfield = "hbm.latency_ns"\nvalues = [50, 100]\n'
    path.write_text(SWEEP.format("area = true") + axis)
    points = points_of(read_sweep(path))
    asked: list[int] = []

    def stub(top: str, cfg: Any, *, jobs: int, step: Any) -> dict[str, Any]:
        asked.append(cfg.vector.exp_rate)
        if cfg.vector.exp_rate == 4:
            raise PlexusError("Yosys fails on exp: why")
        return {"total": {"area_ge": 12.5, "flip_flops": 3, "ram_bits": 8}}

    monkeypatch.setattr(areas, "area_of", stub)
    rows = {point.key: {"status": "ok"} for point in points}
    found = areas.areas_of(points, rows, tmp_path, 1)
    assert asked == [1, 4]
    columns = {"area_ge": 12.5, "area_flip_flops": 3, "area_ram_bits": 8}
    assert [found[point.key] for point in points] == [columns, columns, {}, {}]
    assert capsys.readouterr().err.count("has no area: Yosys fails on exp: why\n") == 1
    assert areas.areas_of(points, {point.key: {"status": "refused"} for point in points}, tmp_path, 1) == {}


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('objectives = ["area_mm2:min"]', "there is no area 'area_mm2'; there are area_ge"),
        ('area = false\nobjectives = ["area_ge:min"]', "area_ge is an objective, so area cannot be false"),
        ("area = 1", "area must be true or false"),
    ],
)
def test_what_a_sweep_cannot_ask(tmp_path: Path, line: str, says: str) -> None:
    path = tmp_path / "s.toml"
    path.write_text(SWEEP.format(line))
    with pytest.raises(PlexusError, match=says):
        read_sweep(path)
