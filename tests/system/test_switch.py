"""`plexus run switch` on a switch of four ports: traffic of every kind, faults, ports that go and come."""

import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from sim.cli import main
from sim.systems.switch.params import SwitchRun, parse_switch
from sim.systems.switch.run import run_switch

pytestmark = pytest.mark.sim

BASE = ("ports=4", "weights=3:1", "warmup_slots=500", "slots=4000")
"""One switch for all tests: its weights are part of it."""


def run(tmp_path: Path, *settings: str, seed: int = 5) -> dict[str, Any]:
    own = {setting.partition("=")[0] for setting in settings}
    base = [setting for setting in BASE if setting.partition("=")[0] not in own]
    asked = SwitchRun(params=parse_switch([*base, *settings]), seed=seed, out=tmp_path)
    return run_switch(asked, Console(quiet=True))


def whole(r: dict[str, Any]) -> None:
    """Everything came once, in order, unchanged, where it belongs."""
    assert r["match"] and r["end"] == "done", {k: v for k, v in r.items() if isinstance(v, int | str)}
    assert r["units_delivered"] == r["units_sent"] > 1_000
    assert r["dropped"] == r["downs"] == r["spurious_replays"] == r["parity_errors"] == 0


@pytest.mark.parametrize(
    ("traffic", "least"), [("uniform", 0.93), ("permutation", 1.0), ("diagonal", 0.9), ("unbalanced", 0.9)]
)
def test_saturated(tmp_path: Path, traffic: str, least: float) -> None:
    r = run(tmp_path, f"traffic={traffic}")
    whole(r)
    assert r["throughput"] >= least - 0.001 and r["refused_flits"] == 0


@pytest.mark.parametrize("rate", [1e-2, 0.1])
def test_nothing_is_lost_with_errors_on_every_wire(tmp_path: Path, rate: float) -> None:
    r = run(tmp_path, f"flit_error_rate={rate}", "packet_flits=1..4", "responses=0.3", "load=0.7", "delay=2")
    whole(r)
    assert r["replays"] > 100


def test_events_agree_with_rates(tmp_path: Path) -> None:
    """What energy is counted from, beside rates a port and a flit time."""
    r = run(tmp_path, "flit_error_rate=0.05", "load=0.5")
    events, link = r["events"], r["switch"]["link"]
    beats = 256 // (8 * link["lanes"])
    assert events["cycles"] == 4000 * beats and events["beats"] == 4 * 4000 * beats
    assert events["stored_beats"] == pytest.approx(beats * 4000 * sum(r["by_output"]), abs=2)
    assert (
        events["stored_beats"] == pytest.approx(4 * 4000 * beats * r["throughput"], abs=2) == events["crossbar_beats"]
    )
    again = (events["payload_beats"] - events["stored_beats"]) / events["stored_beats"]
    assert 0.05 < again < 0.5  # at least once for each that is refused
    assert events["wire_bits"] == 2 * 4 * events["cycles"] * 64 * link["lanes"]


def test_a_hot_output_is_shared(tmp_path: Path) -> None:
    """Fairly between senders, by the weights between classes."""
    for senders in (2, 3):
        r = run(tmp_path, "traffic=hotspot", f"senders={senders}", "slots=10000", seed=senders)
        whole(r)
        assert max(r["by_output"]) >= 0.99 and r["jain"] >= 0.99
        assert r["class_share"] == [pytest.approx(0.75, abs=0.02), pytest.approx(0.25, abs=0.02)]


@pytest.mark.parametrize("inputs", ["different", "mixed"])
def test_classes_from_other_inputs_get_their_shares_too(tmp_path: Path, inputs: str) -> None:
    r = run(tmp_path, "traffic=hotspot", f"class_inputs={inputs}", "slots=10000")
    whole(r)
    assert r["class_share"] == [pytest.approx(0.75, abs=0.02), pytest.approx(0.25, abs=0.02)]


def test_inputs_of_one_class_are_not_starved(tmp_path: Path) -> None:
    """Two sources send both classes, one the first, one the second: each is entitled to a quarter."""
    r = run(tmp_path, "traffic=hotspot", "class_inputs=mixed", "slots=10000")
    whole(r)
    assert r["entitled"] == [0.25] * 4 and r["jain"] >= 0.97 and r["jain_entitled"] == r["jain"], r["by_source"]


def test_a_dead_port_does_not_slow_the_others(tmp_path: Path) -> None:
    r = run(tmp_path, "dead_port=2", "slots=16000", "back_at=14000", "load=0.8")
    assert r["match"] and r["end"] == "unresolved"
    assert r["dropped"] > 1_000 and r["others_kept"] >= 0.98
    assert r["by_output"][2] > 0.3


def test_ports_that_go_and_come(tmp_path: Path) -> None:
    r = run(tmp_path, "restarts=9", "slots=9000", "load=0.6", "packet_flits=1..4", "flit_error_rate=0.001")
    assert r["match"] and r["end"] in ("done", "unresolved")
    assert r["downs"] >= 9 and r["units_delivered"] > 0.9 * r["units_sent"]


def test_partitions_are_never_crossed(tmp_path: Path) -> None:
    r = run(tmp_path, "partitions=2", "load=0.5")
    assert r["match"] and r["misdelivered"] == 0
    assert r["dropped"] == r["port_counters"]["partition"] == r["units_sent"] - r["units_delivered"] > 1_000


def test_endpoints_behind_a_port(tmp_path: Path) -> None:
    path = tmp_path / "routes.json"
    path.write_text(json.dumps([0, 1, 2, 3, 3, 3, 0, 1]))
    r = run(tmp_path, f"routes={path}", "load=0.5")
    whole(r)


def test_idle_latency(tmp_path: Path) -> None:
    r = run(tmp_path, "traffic=probe", "slots=8000")
    whole_latency = r["latency_cycles"]
    assert r["match"] and whole_latency["units"] > 300
    assert whole_latency["p50"] <= 13 and whole_latency["max"] <= 17
    assert all(phase["units"] > 30 for phase in r["latency_by_phase"])


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = [word for setting in BASE for word in ("-p", setting)]
    assert main(["run", "switch", *settings, "-p", "load=0.3", "--seed", "2", "--out", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("MATCH") and "throughput" in out and "latency" in out
    report = json.loads((tmp_path / "report.json").read_text())
    wanted = {"throughput", "latency_cycles", "jain", "class_share", "dropped", "lost", "cycles_per_second"}
    assert wanted <= set(report) and report["seed"] == 2
