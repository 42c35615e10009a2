"""The list of input bits that no run moves."""

import json
from pathlib import Path

import pytest

from verif.checks.undriven import main, still, unread


def run(root: Path, build: str, name: str, plant: int, **inputs: tuple[int, int, int]) -> None:
    folder = root / "unit" / build / f"run-{name}-p{plant}"
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(json.dumps({"top": "unit", "plant": plant}))
    (folder / "toggles.json").write_text(json.dumps(inputs))


def test_runs_and_configurations_add_up_and_faults_do_not(tmp_path: Path) -> None:
    run(tmp_path, "narrow", "bench_unit-s1", 0, data=(4, 0b0011, 0b1111))
    run(tmp_path, "narrow", "bench_unit-s2", 0, data=(4, 0b0111, 0b1111))
    run(tmp_path, "wide", "bench_unit-s1", 0, data=(8, 0b0001_0000, 0b1110_1111))
    run(tmp_path, "wide", "bench_unit-s1", 3, data=(8, 0b1111_1111, 0b1111_1111))
    seen = {("data", 4): (0b1000, 0), ("data", 8): (0b1110_1111, 0b0001_0000)}
    assert still(tmp_path) == {("bench_unit", "unit"): seen}


def test_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PLEXUS_BUILD", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["undriven"])
    assert main() == 1
    run(tmp_path, "b", "bench_unit-s1", 0, data=(8, 0b1000_0110, 0b1111_1111), go=(1, 1, 1))
    assert main() == 0
    assert "| bench_unit | unit | 2 | 9 | data[0 3-6] of 8 | - |" in capsys.readouterr().out


def test_an_output_is_read_if_any_green_run_reads_it(tmp_path: Path) -> None:
    for name, plant, reads in (
        ("bench_a-s1", 0, {"o": True, "done": False, "idle": False}),
        ("bench_b-s1", 0, {"o": False, "done": True, "idle": False}),
        ("bench_b-s1", 2, {"o": True, "done": True, "idle": True}),
    ):
        run(tmp_path, "b", name, plant)
        (tmp_path / "unit" / "b" / f"run-{name}-p{plant}" / "reads.json").write_text(json.dumps(reads))
    assert unread(tmp_path) == {"unit": ["idle"]}
