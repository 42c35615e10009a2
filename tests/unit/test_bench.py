"""The exit code of the figures: which of them fail when they miss what they must reach."""

from pathlib import Path

import pytest

from sim import bench
from sim.figures.rows import Bench, Row

CYCLES = Row(name="stall", what="cycles / bound", value=1.3, unit="x", target="<= 1.2")
SHARE = Row(name="share", what="utilization", value=0.5, unit="", target=">= 0.9")
SPEED = Row(name="slow", what="simulation speed", value=10, unit="cycles/s", target=">= 50,000")
BUILD = Row(name="build", what="a build", value=900, unit="s", target="<= 480")
GOOD = Row(name="good", what="utilization", value=0.95, unit="", target=">= 0.9")
FREE = Row(name="free", what="no target", value=1, unit="", target="")
WRONG = Row(name="wrong", what="bits", value=1, unit="", target="", match=False)


@pytest.mark.parametrize(
    ("rows", "options", "code", "says"),
    [
        ([GOOD, FREE], [], 0, []),
        ([GOOD, CYCLES], [], 1, ["stall: 1.300 x misses <= 1.2"]),
        ([SHARE], [], 1, ["share: 0.500 misses >= 0.9"]),
        ([WRONG], [], 1, ["wrong: bits differ"]),
        ([GOOD, SPEED, BUILD], [], 0, ["no failure without --strict: slow, build"]),
        (
            [GOOD, SPEED, BUILD],
            ["--strict"],
            1,
            ["slow: 10.0 cycles/s misses >= 50,000", "build: 900.0 s misses <= 480"],
        ),
    ],
)
def test_a_missed_target_fails(
    rows: list[Row],
    options: list[str],
    code: int,
    says: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def group(bench: Bench) -> None:
        bench.rows += rows

    monkeypatch.setenv("PLEXUS_BUILD", str(tmp_path))
    monkeypatch.setattr(bench, "GROUPS", {"planted": group})
    assert bench.main(options) == code
    said = "".join(capsys.readouterr())
    assert [words for words in says if words not in said] == []
    assert (tmp_path / "bench.json").exists()
