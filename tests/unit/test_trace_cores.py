"""GPSIMD cores in a trace made by hand: cycles of their own, intervals in tensor cycles, and what is refused."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rtl.contract.gpsimd import CORES_MAX, Counter
from sim.trace.agreement import TraceError, need_agreement
from sim.trace.cores import CORE_STATES, core_intervals, core_state_cycles, cores_that_ran
from sim.trace.recorded import Recorded
from verif.checks.trace_by_hand import by_hand, counters_of

IDLE, BUSY, LOAD, FETCH = Counter.IDLE, Counter.BUSY, Counter.LOAD, Counter.FETCH


def word(*states: int) -> int:
    """States of cores from gp0 on; the others are idle."""
    whole = [*states, *[IDLE] * (CORES_MAX - len(states))]
    return sum(state << 4 * core for core, state in enumerate(whole))


def two_cores() -> Recorded:
    """Of 50 GPSIMD cycles in 100 tensor cycles gp0 runs 15, gp1 10 and then waits for a load."""
    return replace(
        by_hand(),
        cores_step=np.array([0, 21, 10, 10, 10]),
        cores_passed=np.array([0, 10, 5, 5, 5]),
        cores_states=np.array(
            [word(IDLE, IDLE), word(BUSY, FETCH), word(BUSY, BUSY), word(BUSY, LOAD), word(IDLE, LOAD)], np.uint32
        ),
    )


def test_the_states_of_a_core_fit_its_four_bits() -> None:
    assert CORE_STATES[:3] == ("busy", "idle", "sleep") and CORE_STATES[-1] == "fault" and len(CORE_STATES) <= 16


def test_cycles_of_cores_are_their_own_and_intervals_are_of_the_run() -> None:
    trace = two_cores()
    assert cores_that_ran(trace) == [0, 1] and cores_that_ran(by_hand()) == []
    told = [{k: v for k, v in core_state_cycles(trace, core).items() if v} for core in range(3)]
    assert told == [{"busy": 15, "idle": 35}, {"busy": 5, "idle": 10, "fetch": 5, "load": 30}, {"idle": 50}]
    # neighbours of one state are one interval, though the record is another core's
    assert core_intervals(trace, 0).tolist() == [(0, 21, IDLE), (21, 51, BUSY), (51, 100, IDLE)]
    assert core_intervals(trace, 1).tolist() == [(0, 21, IDLE), (21, 31, FETCH), (31, 41, BUSY), (41, 100, LOAD)]


def test_sums_behind_the_limit_of_records_are_counted() -> None:
    sums = np.zeros((CORES_MAX, 16), np.int64)
    sums[:, IDLE] = sums[1, LOAD] = 20
    trace = replace(two_cores(), cores_from=61, cores_recorded=30, cores_sums=sums)
    assert core_state_cycles(trace, 0)["busy"] == 15 and core_state_cycles(trace, 0)["idle"] == 10 + 5 + 20
    assert core_state_cycles(trace, 1)["load"] == 10 + 20
    assert core_intervals(trace, 1).tolist()[-1] == (41, 61, LOAD)


def test_a_run_without_an_engine_has_no_cores() -> None:
    none = np.zeros(0, np.int64)
    trace = replace(by_hand(), cores_step=none, cores_passed=none, cores_states=none, cores_recorded=0)
    assert cores_that_ran(trace) == [] and len(core_intervals(trace, 0)) == 0
    assert not any(core_state_cycles(trace, 0).values())


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"cores_passed": np.array([0, 10, 5, 5, 6])}, "gp0 in busy: the trace has 16, the hardware counted 15"),
        ({"cores_states": two_cores().cores_states ^ (1 << 4)}, "gp1 in"),
        ({"cores_recorded": 51}, "gp0 in idle: the trace has 36, the hardware counted 35"),
        ({"cores_sums": np.eye(CORES_MAX, 16, dtype=np.int64)}, "gp0 in busy"),
    ],
)
def test_cores_that_say_something_else_than_their_counters_are_refused(changes: dict[str, Any], told: str) -> None:
    trace = two_cores()
    result = counters_of(trace)
    need_agreement(trace, result, (16, 0))
    with pytest.raises(TraceError, match=f"GPSIMD cycles of {told}"):
        need_agreement(replace(trace, **changes), result, (16, 0))
