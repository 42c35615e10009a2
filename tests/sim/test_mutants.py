"""Mutants of the smallest unit: its bench notices them, a bench that does not look notices none."""

from pathlib import Path

import pytest

from rtl.contract.config import named
from sim.build import build
from sim.run.runner import BenchError, BenchHangs, run_bench
from verif.mutants.equivalent import is_equivalent
from verif.mutants.insert import PREPARED, MutantModel, read_mutants
from verif.mutants.measure import measure
from verif.mutants.mutant import Mutant
from verif.mutants.unit import Unit
from verif.mutants.units import units

pytestmark = pytest.mark.sim

MODEL = MutantModel(40, 1)
FIFO = next(unit for unit in units() if unit.top == "fifo")
SOURCE = """
import cocotb
from verif.agents.bench import Bench

@cocotb.test(timeout_time=1, timeout_unit="us")
async def words_go_in_and_out(dut):
    bench = Bench(dut)
    dut.i__valid.value = dut.o__ready.value = 1
    await bench.start()
    for word in range(20):
        dut.i__payload.value = word
        await bench.edge
        {check}
"""
BENCHES = {
    "blind_bench": "int(dut.level.value)",
    "red_bench": "assert dut.level.value == 9",
    "endless_bench": "while bench.plant: pass",
    "broken_bench": "{}[bench.plant] if bench.plant else None",
}


@pytest.fixture(autouse=True)
def benches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Benches that no file of the project holds, so that nothing of them may be kept."""
    monkeypatch.setenv("FRESH", "1")
    monkeypatch.syspath_prepend(tmp_path)
    for name, check in BENCHES.items():
        (tmp_path / f"{name}.py").write_text(SOURCE.format(check=check))


def of(bench: str) -> Unit:
    return Unit("fifo", (bench,), FIFO.cfg, FIFO.options)


def test_a_bench_that_does_not_look_lets_every_mutant_live() -> None:
    blind = measure(of("blind_bench"), MODEL, first=6)
    assert {t.fate for t in blind.tried} == {"survived", "equivalent"}
    seeing = measure(FIFO, MODEL, first=6)
    assert seeing.count("failed") + seeing.count("hung") == blind.count("survived") > 0
    assert seeing.count("equivalent") == blind.count("equivalent"), "a proof needs no bench"


def test_how_a_mutant_was_noticed_is_told() -> None:
    (broken,) = measure(of("broken_bench"), MODEL, only=[1]).tried
    assert (broken.fate, broken.told) == ("crashed", "words_go_in_and_out: KeyError: 'mutant 1'")


def test_a_bench_that_is_red_without_a_mutant_measures_nothing() -> None:
    with pytest.raises(BenchError, match="1 of 1 tests failed"):
        measure(of("red_bench"), MODEL, first=1)


def test_a_run_that_does_not_end_is_ended() -> None:
    with pytest.raises(BenchHangs, match="did not end within 3 s of a processor"):
        run_bench(
            "fifo", "endless_bench", FIFO.cfg, plant="mutant 1", options=FIFO.options, altered=MODEL, cpu_seconds=3
        )
    assert run_bench("fifo", "endless_bench", FIFO.cfg, planted=True, options=FIFO.options, altered=MODEL).ok


def test_yosys_proves_what_changes_nothing_and_nothing_else() -> None:
    """Bit 2 of the next of four places is cut off behind the adder; bit 0 is not."""
    folder = build("fifo", FIFO.cfg, options=FIFO.options, altered=MODEL).folder
    mutant = next(m for m in read_mutants(folder) if m.kind == "$eq" and m.mode.startswith("const"))
    assert (folder / PREPARED).is_file()
    proved = {m: is_equivalent(folder, m) for m in (mutant, Mutant("inv", mutant.cell, "$eq", "Y", 0, None, "", ()))}
    assert proved == dict(zip(proved, (True, False)))


def test_a_model_of_other_mutants_is_another_build() -> None:
    ours = build("fifo", FIFO.cfg, options=FIFO.options, altered=MODEL)
    plain = build("fifo", named("tiny"), options=FIFO.options, planted=True)
    assert len({ours.key, plain.key}) == 2 and len({ours.content, plain.content}) == 2
    assert len(read_mutants(ours.folder)) == 40
