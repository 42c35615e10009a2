"""`plexus run link`: two ports with their lanes in the native driver."""

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from firmware.views import KernelError
from sim.errors import PlexusError
from sim.link_run import LinkRun, parse_link, run_link
from verif.checks.link_goodput import LEAST, WIDTHS, goodput


def run(tmp_path: Path, *settings: str) -> dict[str, Any]:
    return run_link(LinkRun(params=parse_link(settings), seed=5, out=tmp_path), Console(quiet=True))


@pytest.mark.parametrize("rate", [0.0, 1e-3, 1e-2])
def test_nothing_is_lost_and_goodput_is_what_replays_cost(tmp_path: Path, rate: float) -> None:
    r = run(tmp_path, "flits=100000", f"flit_error_rate={rate}", "packet_bytes=448")
    assert r["match"] and r["end"] == "done"
    assert r["lost"] == r["duplicated"] == r["reordered"] == r["corrupted"] == r["unresolved"] == 0
    assert r["spurious_replays"] == r["downs"] == 0
    if rate == 0:
        assert r["goodput"] >= 0.99 * 236 / 256
        assert r["replays"] == r["refused_flits"] == 0
    else:
        assert r["goodput"] == pytest.approx(r["goodput_predicted"], rel=0.01)
        sigma = (r["payload_flits"] * rate) ** 0.5 / (1 - rate)
        assert abs(r["replays"] - r["replays_expected"]) <= 3 * sigma


@pytest.mark.parametrize("lanes", WIDTHS)
def test_every_width_is_full_whatever_the_packets(lanes: int) -> None:
    """Corners of the table in docs/framing.md."""
    for size in (0, 8, 64, 200, 325, 448, 512):
        for classes, responses in ((1, False), (8, False), (1, True)):
            share = goodput(lanes, size, classes=classes, responses=responses, flits=700)
            assert share >= LEAST, f"x{lanes}, {size} bytes, {classes} classes: {share:.4f} of the line's flits"


def test_short_bursts_are_invisible_to_replay(tmp_path: Path) -> None:
    r = run(tmp_path, "flits=20000", "burst_rate=0.05", "burst_bytes=3")
    assert r["match"] and r["bursts"] > 1700 and r["corrections"] >= r["bursts"]
    assert r["replays"] == r["refused_flits"] == 0


def test_weights_hold_when_saturated(tmp_path: Path) -> None:
    r = run(tmp_path, "flits=10000", "weights=3:1", "packet_bytes=512")
    assert r["match"]
    assert r["class_shares"] == [pytest.approx(0.75, rel=0.02), pytest.approx(0.25, rel=0.02)]


def test_a_dead_lane_costs_no_packet(tmp_path: Path) -> None:
    r = run(tmp_path, "flits=6000", "kill_lane=3", "kill_at=1500")
    assert r["match"] and r["end"] == "done"
    assert r["width"] == 8 and 64 < r["recovery_flits"] <= 400


def test_a_dead_lane_without_a_spare_halves_the_width(tmp_path: Path) -> None:
    r = run(tmp_path, "flits=6000", "kill_lane=3", "kill_at=1500", "spare_lanes=0")
    assert r["match"] and r["end"] == "done" and r["width"] == 4


@pytest.mark.parametrize("lanes", [1, 16])
def test_other_widths(tmp_path: Path, lanes: int) -> None:
    r = run(tmp_path, "flits=1500", f"lanes={lanes}", "flit_error_rate=0.01", "responses=true")
    assert r["match"] and r["end"] == "done"


def test_wrong_parameters_are_refused_in_a_sentence(tmp_path: Path) -> None:
    for setting, says in (
        ("lanes=3", "lanes must be 1, 2, 4, 8 or 16, not 3"),
        ("flit_error_rate=2", "flit_error_rate must be at most 1, not 2.0"),
        ("flit_error_rate=x", "flit_error_rate must be a number, not 'x'"),
        ("weights=3:0", "weights must be 1 to 8 numbers from 1 to 64 with : between them, not '3:0'"),
        ("packets=3", "link has no parameter 'packets'"),
    ):
        with pytest.raises(KernelError, match=says):
            parse_link([setting])
    with pytest.raises(PlexusError, match="kill_lane must be from 0 to 9, not 10"):
        run(tmp_path, "kill_lane=10")
