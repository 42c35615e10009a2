"""The commands of docs/tutorial-explore.md, and what it says that they answer."""

import csv
import re
import subprocess

import pytest

from sim.toolchain import ROOT, build_root

pytestmark = [pytest.mark.sim, pytest.mark.regress]

PAGE = (ROOT / "docs" / "tutorial-explore.md").read_text(encoding="utf-8")
COMMANDS = [line.split(" #")[0] for block in re.findall(r"```sh\n(.*?)```", PAGE, re.S) for line in block.splitlines()]


def answered(command: str) -> str:
    done = subprocess.run(command.split(), cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_its_commands_and_figures() -> None:
    assert COMMANDS[0] == "make setup" and len(COMMANDS) == 8
    told = [answered(command) for command in COMMANDS[1:7]]
    assert "12,543 cycles" in told[0] and "12,083 cycles" in told[1] and "12,543 cycles become 12,083" in PAGE
    assert "memory: 60 points, 1 models" in told[2] and "memory: 60 points: 60 ok" in told[3]
    for said, gates, registers in ((told[4], "267,512", "18,476"), (told[5], "294,642", "20,426")):
        assert f"{gates} gate equivalents, {registers} flip-flops" in said and gates in PAGE and registers in PAGE
    assert re.search(r"^dma  .* 54  36  417$", told[5], re.M) and "54 levels" in PAGE
    with (build_root() / "explore" / "memory" / "table.csv").open(newline="", encoding="utf-8") as table:
        rows = {
            (r["workload"], r["param n"], r["set hbm.bytes_per_cycle"], r["set hbm.latency_ns"]): int(r["cycles"])
            for r in csv.DictReader(table)
        }
    assert rows["gemm", "512", "64", "25"] == rows["gemm", "512", "128", "25"]  # 128 bring nothing
    far, near = (rows["attention", "", "64", latency] for latency in ("400", "200"))
    assert f"from {far:,} to {near:,}" in PAGE
    assert 0.955 < rows["attention", "", "64", "50"] / rows["attention", "", "64", "100"] < 0.965


def test_a_fourth_exp_lane() -> None:
    """Cycles, busy cycles and gates of the last table; a quarter of an hour of synthesis where nothing is kept."""
    assert "18 points: 18 ok" in answered(COMMANDS[7])
    with (build_root() / "explore" / "attention-exp" / "table.csv").open(newline="", encoding="utf-8") as table:
        rows = [row for row in csv.DictReader(table) if row["set hbm.latency_ns"] == "100"]
    by_rate = {(row["set vector.exp_rate"], row["param seq"]): row for row in rows}
    told = re.findall(
        r"^\| ([124])[^|]* \| ([\d,]+)[^|]* \| ([\d,]+)[^|]* \| ([\d,]+) \| ([\d,]+)[^|]* \|$", PAGE, re.M
    )
    assert [rate for rate, *_ in told] == ["1", "2", "4"]
    for rate, *figures in told:
        short, long = by_rate[rate, "256"], by_rate[rate, "512"]
        want = [short["cycles"], long["cycles"], long["engines.vector.busy"], long["area_ge"]]
        assert [float(figure.replace(",", "")) for figure in figures] == [round(float(one)) for one in want], rate
