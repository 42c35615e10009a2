"""`plexus run link`: two ports with their lanes in the native driver."""

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from firmware.views import KernelError
from sim.errors import PlexusError
from sim.systems.link.run import LinkRun, parse_link, run_link
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


_OTHERS = [pytest.param(lanes, marks=pytest.mark.regress) for lanes in WIDTHS[1:] if lanes != 8]
"""A model each; the narrowest and x8, which other tests have too, are in every run."""


@pytest.mark.parametrize("lanes", [WIDTHS[0], 8, *_OTHERS])
def test_every_width_is_full_whatever_the_packets(lanes: int) -> None:
    """Corners of the table in docs/framing.md."""
    for size in (0, 8, 64, 200, 325, 448, 512):
        for classes, responses in ((1, False), (8, False), (1, True)):
            share = goodput(lanes, size, classes=classes, responses=responses, flits=700)
            assert share >= LEAST, f"x{lanes}, {size} bytes, {classes} classes: {share:.4f} of the line's flits"


@pytest.mark.parametrize("delay", [14, 20, 50])
def test_one_class_keeps_the_line_as_far_as_the_window_reaches(tmp_path: Path, delay: int) -> None:
    r = run(tmp_path, "flits=3000", f"delay={delay}", "packet_bytes=448")
    assert r["match"] and r["goodput"] >= 0.99 * 236 / 256 and r["limited_by"] == "line"


@pytest.mark.parametrize("weights", ["1", "1:1:1:1:1:1:1:1"])
@pytest.mark.parametrize(
    ("delay", "size", "shared", "limit"),
    [
        (1, 64, None, "line"),
        (58, 448, None, "line"),
        (62, 512, None, "window"),
        (80, 64, None, "window"),
        (120, 448, None, "window"),
        *(
            pytest.param(*case, 32, "credits", marks=pytest.mark.regress)  # a model of their own
            for case in ((14, 0), (14, 448), (50, 512), (80, 448))
        ),
    ],
)
def test_goodput_is_as_predicted(
    tmp_path: Path, delay: int, size: int, shared: int | None, limit: str, weights: str
) -> None:
    """Without errors, from the configuration alone: credits and window."""
    given = [] if shared is None else [f"shared_flits={shared}"]
    r = run(tmp_path, "flits=8000", f"delay={delay}", f"packet_bytes={size}", f"weights={weights}", *given)
    assert r["match"] and r["replays"] == 0
    assert r["goodput"] == pytest.approx(r["goodput_predicted"], rel=0.01)
    if weights == "1":
        assert r["limited_by"] == limit


def test_lanes_that_are_equally_bad_stay(tmp_path: Path) -> None:
    r = run(tmp_path, "flits=10000", "burst_rate=0.2")
    assert r["match"] and r["refused_flits"] == 0 and r["corrections"] > 64 * 8 * 10
    assert r["width"] == 8 and r["goodput"] >= 0.99 * 236 / 256


@pytest.mark.parametrize(
    ("lanes", "low", "high"),
    [("3", 0.0, 0.4), ("3:6", 0.0, 0.6), ("0:1:2:3:4:5:6:7", 0.85, 1.0)],
    ids=["one", "two", "all"],
)
def test_weak_lanes_are_replaced_if_they_stand_apart(tmp_path: Path, lanes: str, low: float, high: float) -> None:
    """low, high: share of the bursts that hit flits and are corrected, before a spare takes over."""
    r = run(tmp_path, "flits=12000", "burst_rate=0.2", f"burst_lanes={lanes}")
    assert r["match"] and r["refused_flits"] == 0 and r["width"] == 8
    assert low <= r["corrections"] / (3 * r["bursts"]) <= high
    assert r["goodput"] >= 0.99 * 236 / 256


@pytest.mark.regress  # a model without spare lanes
@pytest.mark.parametrize(("length", "width"), [(3, 8), (4, 4)])
def test_without_a_spare_a_weak_lane_leaves_only_if_half_the_width_carries_more(
    tmp_path: Path, length: int, width: int
) -> None:
    """3 bytes are corrected and cost nothing; with 4 flits are refused, and replays take most of the line."""
    r = run(tmp_path, "flits=12000", "burst_rate=0.2", "burst_lanes=3", f"burst_bytes={length}", "spare_lanes=0")
    assert r["match"] and r["width"] == width
    assert r["goodput"] > (0.9 if width == 8 else 0.35)  # 0.2 with all lanes


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
