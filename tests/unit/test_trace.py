"""sim.trace on programs made by hand, whose answers are known."""

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from rtl.contract.isa import Opcode, Queue
from rtl.contract.memmap import Space
from rtl.contract.timing import Engine
from sim.errors import PlexusError
from sim.trace.agreement import TraceError, need_agreement
from sim.trace.critical import Step, critical_path, semaphore_edges
from sim.trace.instructions import attributed, first_beats
from sim.trace.intervals import STATES, engine_intervals, mask_intervals, refused_cycles, state_cycles
from sim.trace.occupancy import bytes_held, held
from sim.trace.path_states import FIRST_FETCH, path_states, rewritten
from sim.trace.recorded import FILE, FORMAT, NEVER, Recorded, load_trace, save_trace
from verif.checks.trace_by_hand import by_hand, counters_of

BUSY, IDLE = 0, 1
SEMAPHORE = STATES[Engine.VECTOR].index("semaphore")
DRAIN = STATES[Engine.VECTOR].index("drain")


def test_intervals_have_no_gap_and_sum_to_the_run() -> None:
    found = engine_intervals(by_hand(), Engine.VECTOR)
    assert found["begin"].tolist() == [0, 6, 43, 66, 85, 96] and found["end"].tolist() == [6, 43, 66, 85, 96, 100]
    told = state_cycles(by_hand(), Engine.VECTOR)
    assert {k: v for k, v in told.items() if v} == {"busy": 42, "idle": 10, "semaphore": 37, "drain": 11}
    assert state_cycles(by_hand(), Engine.TENSOR)["idle"] == 100


def test_masks_become_intervals_of_a_bit_and_refused_cycles_of_a_port() -> None:
    trace = by_hand()
    of = [mask_intervals(trace.refused_cycle, trace.refused_ports, bit, 100) for bit in range(3)]
    assert [[(int(i["begin"]), int(i["end"])) for i in spans] for spans in of] == [[(10, 20)], [], [(10, 13)]]
    assert list(refused_cycles(trace).values())[:3] == [10, 0, 3]


def test_sums_behind_the_limit_of_records_are_counted() -> None:
    coarse = np.zeros((2, 112), np.uint32)
    coarse[:, 16 * Engine.VECTOR + BUSY] = 4096, 100
    coarse[:, 16 * Engine.TENSOR + IDLE] = coarse[:, 16 * len(Engine) + 2] = 7
    trace = replace(by_hand(), cycles=100 + 4196, coarse=coarse)
    assert state_cycles(trace, Engine.VECTOR)["busy"] == 42 + 4196
    assert state_cycles(trace, Engine.TENSOR)["idle"] == 100 + 14
    assert list(refused_cycles(trace).values())[:3] == [10, 0, 3 + 14]


def test_cycles_belong_to_the_item_they_are_spent_on() -> None:
    spent = attributed(by_hand())
    # in cycle 60 the second is issued, from 61 on the engine has it; waiting is that of the item that waits
    assert spent[0, [BUSY, SEMAPHORE]].tolist() == [61 - 43, 43 - 6]
    assert spent[1, [BUSY, DRAIN]].tolist() == [85 - 61, 96 - 85]
    assert spent.sum() == 100 - 10 and not spent[2].any()
    assert first_beats(by_hand()).tolist() == [43, 61, NEVER]


def test_beats_of_the_array_are_those_of_its_multiplications() -> None:
    """A load that is issued behind a multiplication gets none of its beats."""
    trace = replace(
        by_hand(),
        item_queue=np.array([Queue.TENSOR] * 3),
        item_opcode=np.array([Opcode.MULTIPLY_MOVING, Opcode.LOAD_STATIONARY, Opcode.MULTIPLY_MOVING]),
        item_beats=np.array([20, 0, 10]),
        item_issue=np.array([5, 8, 12]),
        item_retire=np.array([50, 30, 90]),
        state_cycle=np.array([0, 0, 0, 0, 0, 10, 22, 26, 44]),
        state_engine=np.array([1, 2, 3, 4, 0, 0, 0, 0, 0]),
        state_value=np.array([IDLE] * 5 + [BUSY, IDLE, BUSY, IDLE]),
    )
    assert attributed(trace)[:, BUSY].tolist() == [20, 0, 10]
    assert first_beats(trace).tolist() == [10, NEVER, 34]
    broken_off = replace(trace, item_retire=np.array([50, 30, NEVER]))
    assert attributed(broken_off)[:, BUSY].sum() == 30


def test_the_path_goes_back_to_what_came_last_and_has_every_cycle() -> None:
    assert list(semaphore_edges(by_hand())) == [(0, 40, NEVER, 0)]
    assert critical_path(by_hand()) == [
        Step(0, 5, "start"),
        Step(5, 10, "issue", copy=0),
        Step(10, 40, "moves", copy=0),
        Step(40, 43, "issue", item=0),
        Step(43, 61, "runs", item=0),
        Step(61, 95, "runs", item=1),
        Step(95, 100, "end"),
    ]


def test_a_run_in_which_nothing_ended_is_one_step() -> None:
    trace = replace(by_hand(), item_retire=np.full(3, NEVER), copy_end=np.array([NEVER]))
    assert critical_path(trace) == [Step(0, 100, "start")]


def test_the_path_by_engine_and_state_is_all_of_the_run() -> None:
    path = critical_path(by_hand())
    assert path_states(by_hand(), path, 0) == {
        ("", "start"): 5,
        ("dma", "idle"): 35,
        ("vector", "semaphore"): 3,
        ("vector", "busy"): 42,
        ("vector", "drain"): 10,
        ("", "end"): 5,
    }
    fetches = np.where(by_hand().state_value == SEMAPHORE, SEMAPHORE + 1, by_hand().state_value)
    early = path_states(replace(by_hand(), state_value=fetches), path, 1)
    late = path_states(replace(by_hand(), state_value=fetches), path, 0)
    assert early["vector", FIRST_FETCH] == late["vector", "fetch"] == 3
    cut = replace(by_hand(), cycles=200, coarse_from=50)
    assert path_states(cut, path, 0)["", "coarse"] == 45  # what follows 95 is nobody's


def test_a_tile_that_is_written_behind_somebody_elses_last_read() -> None:
    path = critical_path(by_hand())
    store = {"access_tile": np.array([0, 0]), "access_item": np.array([NEVER, 0]), "access_copy": np.array([0, NEVER])}
    assert rewritten(by_hand(), path) == {}  # item 0 reads what the copy wrote
    reads_first = replace(by_hand(), access_writes=np.array([0, 1]), **store)
    assert rewritten(reads_first, path) == {"a": 61 - 43}  # of the item's 18 cycles, the copy took 30
    longer = replace(reads_first, copy_begin=np.array([35]), copy_item=np.array([NEVER]))
    assert rewritten(longer, critical_path(longer)) == {"a": 5}
    needed = replace(reads_first, access_tile=np.array([1, 1]), access_writes=np.array([1, 0]))
    assert rewritten(needed, path) == {}


def test_tiles_are_held_from_the_first_write_to_the_last_read() -> None:
    # item 1 writes the first tile again while item 0 may read it still, and nobody reads that
    assert held(by_hand()).tolist() == [(10, 95, 0), (42, 95, 1)]
    again = replace(by_hand(), item_issue=np.array([42, 75, 5]))
    assert held(again).tolist() == [(10, 70, 0), (75, 95, 0), (42, 95, 1)]
    cycles, level = bytes_held(again, Space.SBUF)
    assert cycles.tolist() == [10, 42, 70, 75, 95] and level.tolist() == [512, 768, 256, 768, 0]


@pytest.mark.parametrize(
    ("column", "at", "by", "told"),
    [
        ("state_cycle", 6, 1, "cycles of vector in busy"),
        ("state_value", 8, -7, "cycles of vector in busy"),
        ("refused_cycle", 1, 1, "refused cycles of sbuf_vector_read"),
        ("beats", 0, 1, "beats read from HBM"),
        ("item_retire", 1, -96, "instructions that retired"),
        ("item_issue", 1, -61, "instructions issued"),
        ("copy_end", 0, -41, "descriptors that ended"),
    ],
)
def test_a_trace_that_says_something_else_than_the_counters_is_refused(
    column: str, at: int, by: int, told: str
) -> None:
    trace, result = by_hand(), counters_of(by_hand())
    need_agreement(trace, result, (16, 0))
    values = getattr(trace, column).astype(np.int64)
    values.reshape(-1)[at] += by
    result = replace(result, conflicts={name: count for name, count in result.conflicts.items()})
    with pytest.raises(TraceError, match=told):
        need_agreement(replace(trace, **{column: values}), result, (16, 0))


def test_a_trace_is_kept_whole_and_a_torn_one_is_told_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(PlexusError, match="has no trace.npz: the run was made with --no-trace"):
        load_trace(tmp_path)
    path = save_trace(by_hand(), tmp_path)
    again = load_trace(tmp_path)
    for field in fields(Recorded):
        assert np.array_equal(getattr(again, field.name), getattr(by_hand(), field.name)), field.name
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(PlexusError, match="trace.npz is torn"):
        load_trace(tmp_path)
    save_trace(replace(by_hand(), format=FORMAT + 1), tmp_path)
    with pytest.raises(PlexusError, match=f"has format {FORMAT + 1}, not {FORMAT}: run it again"):
        load_trace(tmp_path)
    np.savez(tmp_path / FILE, format=FORMAT)
    with pytest.raises(PlexusError, match="has no column cycles"):
        load_trace(tmp_path)
    with pytest.raises(PlexusError, match="cannot be written"):
        save_trace(by_hand(), path)
