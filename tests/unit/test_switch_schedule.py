"""The golden scheduler of a switch: its parts against their definitions, its figures under traffic (short runs)."""

import itertools
from collections import Counter

import numpy as np
import pytest

from rtl.contract.link_config import LinkConfig
from rtl.contract.switch_config import SwitchConfig
from sim.systems.switch.shares import entitled
from verif.checks.switch_traffic import PATTERNS, jain, run, senders
from verif.golden.switch_matching import Islip, Orders, merged, wavefront
from verif.golden.switch_schedule import Schedule
from verif.golden.switch_turns import Arrears

WEIGHTS = (8, 4, 2, 1, 1, 1, 1, 1)


@pytest.mark.parametrize("count", [5, 17, 21])
def test_orders_are_fair(count: int) -> None:
    """Every input is at every place equally often, and before every other one half of the time."""
    orders = Orders(count)
    places = np.array([orders.step() for _ in range(20_000)])
    assert (np.sort(places, axis=1) == np.arange(count)).all()
    for i in range(count):
        assert np.bincount(places[:, i], minlength=count).min() > 0.85 * 20_000 / count
    for i, k in itertools.combinations(range(count), 2):
        assert abs((places[:, i] < places[:, k]).mean() - 0.5) < 0.03, f"{i} before {k}"


def _is_matching(found: dict[int, int], asks: list[int], rows: set[int], columns: set[int]) -> bool:
    return (
        len(set(found.values())) == len(found)
        and set(found) <= rows
        and set(found.values()) <= columns
        and all(asks[i] >> o & 1 for i, o in found.items())
    )


def test_wavefront_and_islip_find_matchings() -> None:
    rng = np.random.default_rng(1)
    n = 9
    islip = Islip(n, 2)
    for _ in range(500):
        asks = [int(x) for x in rng.integers(0, 1 << n, n) & rng.integers(0, 1 << n, n)]
        rows, columns = ({int(x) for x in np.flatnonzero(rng.random(n) < 0.8)} for _ in range(2))
        found = wavefront(asks, rows, columns, rng.permutation(n).tolist())
        assert _is_matching(found, asks, rows, columns)
        left = columns - set(found.values())
        assert not any(asks[i] >> o & 1 for i in rows - set(found) for o in left), "not maximal"
        assert _is_matching(islip.match(asks, rows, columns), asks, rows, columns)


def test_merged_is_never_lighter() -> None:
    rng = np.random.default_rng(2)
    n = 8
    for _ in range(500):
        weight = rng.integers(0, 9, (n, n))
        both = [
            {i: int(o) for i, o in enumerate(rng.permutation(n)) if rng.random() < 0.7},
            {i: int(o) for i, o in enumerate(rng.permutation(n)) if rng.random() < 0.7},
        ]
        got, kept = merged(both[0], both[1], lambda i, o, weight=weight: int(weight[i][o]))
        assert len(set(got.values())) == len(got)
        assert all(got[i] == both[0][i] for i in kept)
        sums = [sum(weight[i][o] for i, o in m.items()) for m in (got, *both)]
        assert sums[0] >= max(sums[1:])


@pytest.mark.parametrize(("pattern", "least"), [("uniform", 0.97), ("diagonal", 0.95), ("unbalanced", 0.94)])
def test_throughput(pattern: str, least: float) -> None:
    got = run(SwitchConfig(), PATTERNS[pattern], seed=1, slots=1500, warm_up=1500)
    assert got.throughput >= least, f"{pattern}: {got.throughput:.4f}"


def test_a_permutation_loses_nothing() -> None:
    assert run(SwitchConfig(), PATTERNS["permutation"], seed=1, slots=500, warm_up=100).throughput == 1.0


@pytest.mark.parametrize("count", [2, 3, 16])
def test_senders_to_one_output_are_served_alike(count: int) -> None:
    got = run(SwitchConfig(), senders(count), seed=2, slots=10_000, warm_up=500)
    assert jain(got.flits.sum((1, 2))[:count].astype(float)) >= 0.99


@pytest.mark.parametrize("ports", range(4, 21))
def test_any_number_of_ports_is_fair(ports: int) -> None:
    """Units of 4 from three senders, the others silent, and units of 1 from all, to one output."""
    cfg = SwitchConfig(ports=ports, link=LinkConfig(classes=1))
    for senders_, flits, slots in ((3, 4, 2000), (ports, 1, 150 * ports)):
        got = run(cfg, senders(senders_), seed=3, unit_flits=flits, slots=slots, warm_up=100)
        served = got.flits.sum((1, 2))[:senders_].astype(float)
        assert jain(served) >= 0.99, f"{senders_} senders, units of {flits}: {served / slots}"


@pytest.mark.parametrize("strict", [-1, 0], ids=["weights", "strict"])
@pytest.mark.parametrize("weights", [(1, 1), (3, 1), (7, 1), (8, 4, 1), (1,) * 8], ids=lambda w: ":".join(map(str, w)))
@pytest.mark.parametrize("ports", [4, 9])
def test_inputs_of_one_class_have_what_they_are_entitled_to(ports: int, weights: tuple[int, ...], strict: int) -> None:
    """Half of the inputs send all classes to one output, each of the others one."""
    classes = range(len(weights))
    cfg = SwitchConfig(
        ports=ports,
        link=LinkConfig(classes=len(weights), weights=weights + (1,) * (8 - len(weights)), strict_class=strict),
    )
    sends = [list(classes) if 2 * i < ports else [i % len(weights)] for i in range(ports)]
    got = run(cfg, senders(ports), seed=1, classes_of=lambda i: sends[i], slots=4000, warm_up=400)
    shares = entitled([sum(1 << c for c in mine) for mine in sends], weights, strict, cfg.link.strict_cap)
    served = got.flits.sum((1, 2)) / 4000
    assert jain(served / shares) >= 0.97, f"served {served}, entitled to {np.round(shares, 4)}"


def test_arrears_by_hand() -> None:
    """Inputs 0 and 1 wait long, 2 does not; 0 is served."""
    arrears = Arrears(SwitchConfig(ports=4))
    lengths = [20, 8, 7, 0, 0]
    for _ in range(15):
        arrears.step(lengths, 0, {0})
    assert arrears.owed == [0, 15, 0, 0, 0] and arrears.first({0, 1, 2}, {0, 1, 2}) == {0, 1, 2}
    arrears.step(lengths, 0, {0, 1})  # it is busy with another output: nothing missed
    arrears.step(lengths, None, set())
    assert arrears.owed[1] == 15
    arrears.step(lengths, 0, {0})
    assert arrears.first({0, 1, 2}, {0, 1, 2}) == {1}
    assert arrears.first({0, 1, 2}, {0, 2}) == {0, 1, 2} and arrears.first({0, 2}, {0, 2}) == {0, 2}
    arrears.step(lengths, 1, {1})
    assert arrears.owed == [0, 15, 0, 0, 0]
    for _ in range(40):
        arrears.step(lengths, 0, {0})
    assert arrears.owed[1] == 31
    arrears.step([20, 7, 7, 0, 0], 0, {0})
    assert arrears.owed == [0] * 5


@pytest.mark.parametrize("unit_flits", [1, pytest.param(4, marks=pytest.mark.regress)])
@pytest.mark.parametrize("strict", [-1, 7], ids=["weights", "strict"])
@pytest.mark.parametrize("where", ["different", "same", "mixed"])
def test_classes_have_their_shares(where: str, strict: int, unit_flits: int) -> None:
    """10,000 flits to one output: shares within 2 % of the weights; the strict class has a quarter, its cap."""
    mixed = [[0], [0, 1], [2, 3], [0, 1, 2, 3]]
    classes = {"different": lambda i: [i], "same": lambda i: [0, 1, 2, 3], "mixed": lambda i: mixed[i]}[where]
    extra = [] if strict < 0 else [strict]
    cfg = SwitchConfig(link=LinkConfig(weights=WEIGHTS, strict_class=strict))
    got = run(
        cfg,
        senders(4),
        seed=1,
        unit_flits=unit_flits,
        classes_of=lambda i: [*classes(i), *extra],
        slots=10_000,
        warm_up=200,
    )
    flits = got.flits.sum((0, 1)).reshape(-1, 2).sum(1)
    assert flits.sum() == 10_000
    wanted = {c: WEIGHTS[c] / 15 * (1 if strict < 0 else 0.75) for c in range(4)} | ({7: 0.25} if extra else {})
    for class_, share in wanted.items():
        assert abs(flits[class_] / 10_000 / share - 1) <= 0.02, (
            f"class {class_}: {flits[class_]}, {share:.3f} is its share"
        )


def test_strict_units_wait_for_one_unit_at_most() -> None:
    """Units of 4 flits everywhere; a strict one now and then, alone: it begins 1 to 5 slots after it is there."""
    cfg = SwitchConfig(ports=8, link=LinkConfig(strict_class=2))
    n, queues = cfg.inputs, cfg.link.queues
    schedule = Schedule(cfg)
    rng = np.random.default_rng(3)
    left = [0] * n
    waits = Counter[int]()
    pair, since = None, 0
    full = sum(1 << (o * queues) for o in range(n))
    for slot in range(6000):
        for i, grant in schedule.grants.items():
            if grant.first and grant.queue // 2 == 2:
                assert pair == (i, grant.output)
                waits[slot - since] += 1
                pair = None
            left[i] = (4 if grant.first else left[i]) - 1
        if pair is None and slot > since + 16:
            pair, since = (int(rng.integers(n)), int(rng.integers(n))), slot
        lists = [full | (1 << pair[1] * queues + 4 if pair and pair[0] == i else 0) for i in range(n)]
        more = sum(1 << i for i in range(n) if left[i])
        schedule.step(lists, [[8] * n] * n, more, (1 << n * queues) - 1)
    assert sum(waits.values()) > 250
    assert max(waits) <= 5, f"slots that strict units waited: {dict(waits)}"
