"""What `plexus emit` writes is RTL that other tools take, and what they must not take is noticed."""

from dataclasses import replace
from pathlib import Path

import pytest

from rtl.contract.config import named
from rtl.emit.constants import run_constants
from rtl.emit.verilog import emit
from sim.build.emitting import emit_top
from sim.build.tops import TOPS
from sim.cli import main
from sim.errors import PlexusError
from sim.toolchain import activate
from verif.benches.gpsimd.vector_unit_top import VectorUnitTop
from verif.checks.emitted import COMPARED, QUICK, check, faults_of

TINY = named("tiny")


@pytest.mark.parametrize("top", QUICK)
def test_other_tools_take_it(top: str) -> None:
    assert check(top) == []


def test_every_top_is_checked_somewhere() -> None:
    assert set(COMPARED) | set(QUICK) <= set(TOPS)
    assert "port_lanes" in QUICK


def test_a_model_is_there_when_it_is_asked_for() -> None:
    assert "it calls C++: native_encoder.cpp" in faults_of(emit_top("flit_encoder", TINY, form="native"))


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("  assign gated =", "  assign enable = clk;\n  assign gated =", "Yosys"),
        ("plexus_clock_gate ", "plexus_clock_gates ", "Yosys"),
        ("endmodule", "  reg held;\n  always @* if (clk) held = enable;\nendmodule", "%Warning-LATCH"),
    ],
)
def test_planted_faults_are_found(old: str, new: str, says: str) -> None:
    emitted = emit_top("clock_gate", TINY)
    assert faults_of(emitted) == []
    broken = replace(emitted, own_text=emitted.own_text.replace(old, new, 1))
    assert broken.text != emitted.text, emitted.text
    assert any(fault.startswith(says) for fault in faults_of(broken)), faults_of(broken)


def test_form_is_refused_where_there_is_none() -> None:
    with pytest.raises(PlexusError, match="top mac has no C"):
        emit_top("mac", TINY, form="native")
    with pytest.raises(PlexusError, match="the array is native or structural, not 'fast'"):
        emit_top("core", TINY, form="fast")


def test_vectors_of_the_largest_core_run_long() -> None:
    """Sixteen lanes, which could be in C++ were their words not too long for it."""
    activate()
    emitted = emit(VectorUnitTop(16), "vector_unit", runs_long=True)
    assert "plexus_gpsimd_lanes_16" in emitted.text


def test_a_process_of_constants_runs() -> None:
    trigger = "\\$auto$verilog_backend.cc:1:dump_module$1 "
    module = f"module a(b);\n  reg {trigger} = 0;\n  always @*\n    b[3:0] = 4'h{{}};\nendmodule\n"
    run = f"  always @* begin\n    if ({trigger}) begin end\n    b[3:0] = 4'h{{}};\n  end\n"
    assert run.format("0") in run_constants(module.format("0"), zeros=True)
    assert run_constants(module.format("0"), zeros=False) == module.format("0")
    assert run.format("5") in run_constants(module.format("5"), zeros=False)


def test_verbs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.v"
    assert main(["emit", "clock_gate", "--config", "tiny", "-o", str(file)]) == 0
    assert 'lint_off -rule UNUSEDSIGNAL -file "*mine.v"' in (tmp_path / "mine.vlt").read_text()
    capsys.readouterr()
    assert main(["lint", "clock_gate", "--config", "tiny"]) == 0
    assert capsys.readouterr().out == "clock_gate: Verilator has nothing to say\n"
    assert main(["lint", "flit_encoder", "--array", "fast"]) == 2


def test_lint_says_what_it_found(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sim.build.lint.warnings_of", lambda emitted: ["%Warning-LATCH: x"] * 7)
    assert main(["lint", "clock_gate", "--config", "tiny"]) == 1
    err = capsys.readouterr().err
    assert err.startswith("plexus: Verilator has 7 warnings about clock_gate; the first:\n%Warning-LATCH")
