"""`plexus run switch`: what wrong input gets, and what a run is made of. No simulator starts here."""

import json
from pathlib import Path

import pytest

from sim.cli import main
from sim.native.switch import SwitchCounts, SwitchTraffic
from sim.systems.switch.measures import fairness, latencies, rates, verdict
from sim.systems.switch.params import SwitchRun, parse_switch
from sim.systems.switch.shares import entitled


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["-p", "ports=3"], "ports must be at least 4, not 3"),
        (["-p", "ports=73"], "ports must be at most 72, not 73"),
        (["--config", "sw16", "-p", "ports=17"], "ports must be at most 16, which sw16 has, not 17"),
        (["--config", "sw17"], "there is no switch 'sw17'; there are sw4, sw16, sw20, sw40, sw72"),
        (["--config", "small"], "there is no switch 'small'; there are sw4, sw16, sw20, sw40, sw72"),
        (["--array", "native"], "switch has no array: the form of its codec is a parameter, -p codec=native or"),
        (["-p", "load=1.01"], "load must be at most 1, not 1.01"),
        (["-p", "load=-0.1"], "load must be at least 0, not -0.1"),
        (["-p", "load=0"], "load must be above 0: a switch without traffic has nothing to measure"),
        (["-p", "load=2"], "load must be at most 1, not 2"),
        (["-p", "load=full"], "load must be a number, not 'full'"),
        (["-p", "load=nan"], "load must be a finite number"),
        (["-p", "traffic=tornado"], "traffic must be one of uniform, permutation, hotspot, diagonal, unbalanced"),
        (["-p", "packet_flits=5"], "packet_flits must be 1 to 4, or a range of these as in 1..4, not '5'"),
        (["-p", "packet_flits=0"], "packet_flits must be 1 to 4"),
        (["-p", "packet_flits=3..2"], "packet_flits must be 1 to 4"),
        (["-p", "weights=3:0"], "weights must be 1 to 8 numbers from 1 to 64 with : between them, not '3:0'"),
        (["-p", "weights=0:0"], "weights must be 1 to 8 numbers from 1 to 64 with : between them, not '0:0'"),
        (["-p", "weights=-1:2"], "weights must be 1 to 8 numbers from 1 to 64 with : between them, not '-1:2'"),
        (["-p", "weights=" + ":".join("1" * 9)], "weights must be 1 to 8 numbers from 1 to 64"),
        (["-p", "weights="], "weights must be 1 to 8 numbers from 1 to 64"),
        (["-p", "strict_class=1"], "strict_class must be one of the 1 classes in use, not 1"),
        (["-p", "senders=2"], "senders belongs to traffic=hotspot, not uniform"),
        (["-p", "traffic=hotspot", "-p", "senders=17"], "senders must be at most 16 with 16 ports, not 17"),
        (["-p", "lanes=3"], "lanes must be 1, 2, 4, 8 or 16, not 3"),
        (
            ["-p", "ports=72", "-p", "lanes=16"],
            "switch.ports must be at most 63 at x16, not 72: a port has 1,031 input pins, and Amaranth allows 65,534",
        ),
        (["-p", "matching=greedy"], "matching must be one of merged, wavefront, islip, not 'greedy'"),
        (["-p", "dead_port=16"], "dead_port must be at most 15 with 16 ports, not 16"),
        (["-p", "dead_at=5"], "dead_at and back_at need dead_port"),
        (["-p", "dead_port=1", "-p", "dead_at=20000"], "must follow each other and lie below the 20000 slots"),
        (["-p", "dead_port=1", "-p", "restarts=2"], "dead_port and restarts do not go together"),
        (["-p", "routes=absent.json"], "absent.json cannot be read: No such file or directory"),
        (["-p", "port=4"], "switch has no parameter 'port'; it has ports, traffic"),
        (["-p", "ports"], "a parameter is written name=value, not 'ports'"),
        (["--waves", "w.vcd"], "switch takes --config, --set and parameters (-p): no --waves"),
        (["--set", "port=4"], "a setting names 'port', which is no field"),
        (["--set", "keep_slots=0"], "switch.keep_slots must be from 1 to 255, not 0"),
    ],
)
def test_wrong_input_gets_one_sentence(capsys: pytest.CaptureFixture[str], arguments: list[str], says: str) -> None:
    assert main(["run", "switch", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and says in err


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ([0, 1, None, 3], "has a hole: endpoint 2 has no port"),
        ([0, 1, 2], "has a hole: endpoint 3 has no port"),
        ([0, 2, 2, 3], "has a loop: endpoint 1 is at port 1, but is sent to port 2, which sends it back"),
        ([0, 1, 2, 3, 4], "endpoint 4 must go to a port from 0 to 3, not 4"),
        ([0, 1, 2, True], "endpoint 3 must go to a port from 0 to 3, not True"),
        ({"0": 0}, "must be a list of at most 4096 ports"),
        ("[0, 1", "is no valid JSON"),
    ],
)
def test_a_table_that_leads_nowhere_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, table: object, says: str
) -> None:
    path = tmp_path / "routes.json"
    path.write_text(table if isinstance(table, str) else json.dumps(table))
    assert main(["run", "switch", "-p", "ports=4", "-p", f"routes={path}"]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and says in err


def test_the_configuration_that_is_run(tmp_path: Path) -> None:
    assert SwitchRun(params=parse_switch([])).cfg.ports == 16
    assert SwitchRun(params=parse_switch(["ports=21"])).cfg.name == "sw40"
    cfg = SwitchRun(params=parse_switch(["lanes=2", "matching=islip", "weights=3:1"]), config="sw20").cfg
    assert (cfg.ports, cfg.link.lanes, cfg.matching, cfg.link.weights[:3]) == (20, 2, "islip", (3, 1, 1))
    path = tmp_path / "routes.json"
    path.write_text("[0, 1, 2, 3, 2, 0]")
    run = SwitchRun(params=parse_switch(["ports=4", f"routes={path}", "partitions=2"]), seed=7)
    traffic = run.traffic(run.cfg)
    assert (traffic.routes, traffic.partitions, traffic.seed) == ((0, 1, 2, 3, 2, 0), (0, 1, 0, 1), 7)


def counts(**values: object) -> SwitchCounts:
    names = SwitchCounts.__dataclass_fields__
    lists = {"by_class": (0,) * 8, "by_source": (0,) * 4, "by_output": (0,) * 4}
    return SwitchCounts(**({n: 0 for n in names} | lists | values))  # type: ignore[arg-type]


def told(**values: int) -> dict[str, int]:
    names = ("hole", "partition", "dead", "dropped", "answered", "late", "parity", "responder_parity")
    link = ("refused", "replay", "spurious", "retrained", "down", "unresolved", "bad_unit")
    return {n: 0 for n in (*names, *(f"link_{n}" for n in link))} | values


def test_verdicts() -> None:
    assert verdict(counts(), told())["end"] == "done"
    lost = verdict(counts(outstanding=2, lost=1), told())
    assert (lost["match"], lost["lost"], lost["end"]) == (False, 3, "stuck")
    dead = verdict(counts(unsettled=5), told(dead=4, late=1))
    assert (dead["match"], dead["lost"], dead["dropped"], dead["end"]) == (True, 0, 4, "unresolved")
    assert verdict(counts(unsettled=5), told(dead=4))["lost"] == 1
    assert not verdict(counts(misdelivered=1), told())["match"]


@pytest.mark.parametrize(
    ("classes", "weights", "strict", "shares"),
    [
        ([3, 3, 1, 2], (3, 1), -1, [0.25, 0.25, 0.25, 0.25]),
        ([3, 3, 1, 2], (7, 1), -1, [0.875 / 3, 0.875 / 3, 0.875 / 3, 0.125]),
        ([1, 2, 1, 0], (3, 1), -1, [0.375, 0.25, 0.375, 0]),
        ([3, 3, 1, 2], (1, 1), 0, [0.25, 0.25, 0.25, 0.25]),
        ([1, 2, 2], (1, 1), 0, [0.25, 0.375, 0.375]),
        ([1, 1, 0], (1,), 0, [0.5, 0.5, 0]),
        ([7, 6, 4], (1, 1, 6), -1, [1 / 3, 1 / 3, 1 / 3]),
    ],
)
def test_what_sources_are_entitled_to(
    classes: list[int], weights: tuple[int, ...], strict: int, shares: list[float]
) -> None:
    assert entitled(classes, weights, strict, strict_cap=16) == pytest.approx(shares)


def test_served_against_entitled() -> None:
    hot = SwitchRun(params=parse_switch(["ports=4", "traffic=hotspot", "weights=7:1"]))
    even = counts(by_source=(700, 700, 700, 300))
    found = fairness(hot.traffic(hot.cfg), [3, 3, 1, 2], counts(), even)
    assert found["jain_entitled"] == pytest.approx(1, abs=1e-6) and sum(found["entitled"]) == pytest.approx(1, abs=1e-5)
    starved = fairness(hot.traffic(hot.cfg), [3, 3, 1, 2], counts(), counts(by_source=(1_200, 1_100, 60, 40)))
    assert starved["jain_entitled"] < 0.8
    uniform = SwitchRun(params=parse_switch(["ports=4"]))
    assert fairness(uniform.traffic(uniform.cfg), [1] * 4, counts(), even)["jain_entitled"] is None


def test_rates_and_latencies() -> None:
    run = SwitchRun(params=parse_switch(["ports=4", "weights=3:1"]))
    traffic: SwitchTraffic = run.traffic(run.cfg)
    begin = counts(cycles=4_000)
    end = counts(
        cycles=8_000,
        offered_flits=3_600,
        by_class=(2_700, 900, *(0,) * 6),
        by_source=(900,) * 4,
        by_output=(1_000, 800, 900, 900),
    )
    r = rates(run.cfg, traffic, [("begin", begin), ("end", end)])
    assert (r["slots"], r["throughput"], r["jain"], r["class_share"]) == (1_000, 0.9, 1.0, [0.75, 0.25])
    assert r["others_kept"] is None
    hot = SwitchRun(params=parse_switch(["ports=4", "traffic=hotspot", "senders=2"]))
    skewed = counts(cycles=8_000, by_source=(300, 0, 0, 100), by_output=(400, 0, 0, 0))
    assert rates(hot.cfg, hot.traffic(hot.cfg), [("begin", begin), ("end", skewed)])["jain"] == 0.8
    bins = [[0] * 10 for _ in range(8)]
    bins[0][3], bins[0][9] = 99, 1
    found = latencies(run.cfg, bins, [bins[0]], most=500)
    assert found["latency_cycles"] == {"p50": 3, "p99": 3, "max": 500, "units": 100}
    assert len(found["latency_by_class"]) == 1
