"""What the benches declare: every bench runs, every fault is noticed somewhere, where the bench is green without it.

tests/sim/test_benches.py refuses to start otherwise; here it is known in seconds, and the refusals are tested.
"""

import pytest

from sim.errors import PlexusError
from sim.run.faults import own_faults
from verif.bench import EVERY, REST, Fault, Run, noticed_by
from verif.collect import Declared, Item, declarations, declared_in, items

SHAPE = {"shape": 16, "depth": 4}
FAULTS = own_faults("fifo")


def collected(*runs: Run, bench: str = "verif.benches.base.bench_fifo") -> tuple[list[Item], list[Item]]:
    return items(Declared(bench, run) for run in runs)


def test_what_the_benches_declare_is_in_order() -> None:
    green, faulty = items(declarations())
    assert len(green) > 300 and len(faulty) > 700
    names = [str(item) for item in (*green, *faulty)]
    assert len(set(names)) == len(names)


def test_a_run_is_a_test_of_every_seed_and_fault() -> None:
    green, faulty = collected(Run("fifo", options=SHAPE, seeds=(3, 7), faults=EVERY))
    assert [str(item) for item in green] == [f"base/fifo tiny depth=4 shape=16 seed {n}" for n in (3, 7)]
    assert [str(item) for item in faulty] == [f'base/fifo tiny depth=4 shape=16 "{what}"' for what in FAULTS]
    assert len({item.group for item in (*green, *faulty)}) == 1, "they share a model"


def test_the_rest_is_what_no_declaration_names() -> None:
    named = (*noticed_by("keeps_order", FAULTS[0]), Fault(FAULTS[1], hangs=True))
    _, faulty = collected(Run("fifo", options=SHAPE, faults=(*named, REST)))
    assert [(i.fault.by, i.fault.hangs) for i in faulty] == [("keeps_order", False), (None, True), (None, False)]
    assert sorted(item.plant for item in faulty) == sorted(FAULTS)


@pytest.mark.parametrize(
    ("runs", "says"),
    [
        ([Run("fifo", seeds=(), faults=EVERY)], "base/fifo tiny must notice planted faults and is never green"),
        (
            [Run("fifo", seeds=(1,)), Run("fifo", options=SHAPE, seeds=(), faults=EVERY)],
            "base/fifo tiny depth=4 shape=16 must notice planted faults and is never green without them",
        ),
        ([Run("fifo", planted=False, faults=EVERY)], "unplanted has planted faults to notice on a build without them"),
        ([Run("fifo", faults=("rust",))], "must notice 'rust', which is no planted fault of any unit"),
        ([Run("fifo", faults=FAULTS[:-1])], f'no bench must notice planted fault "{FAULTS[-1]}" of fifo'),
        ([Run("ram", faults=EVERY)], "ram tiny must notice planted faults, and ram has none of its own"),
        ([Run("fifo", faults=EVERY), Run("fifo", seeds=(9, 9))], "base/fifo tiny seed 9 is declared 2 times"),
        ([Run("fifo", faults=(EVERY, FAULTS[0]))], f'base/fifo tiny "{FAULTS[0]}" is declared 2 times'),
        ([Run("fifo", faults=EVERY, regress=True)], "must notice planted faults, which make test plants"),
        ([Run("fifo", faults=EVERY, regress=True)], "base.fifo declares runs for make regress only"),
        ([Run("fiffo")], "there is no top 'fiffo'"),
    ],
)
def test_what_cannot_hold_is_refused(runs: list[Run], says: str) -> None:
    with pytest.raises(PlexusError) as error:
        collected(*runs)
    assert says in str(error.value)


def test_a_fault_may_be_noticed_on_two_builds_and_end_to_end() -> None:
    _, faulty = collected(
        Run("fifo", faults=(EVERY, *noticed_by("keeps_order", FAULTS[0]))), Run("fifo", options=SHAPE, faults=EVERY)
    )
    assert len(faulty) == 2 * len(FAULTS) + 1


def test_a_declaration_is_read_without_its_bench() -> None:
    text = """
import cocotb_is_not_needed
from verif.bench import Run
DEPTH = 4
WIDTH = manifest().config.width
def of(shape):
    return {"shape": shape, "depth": DEPTH}
RUNS = tuple(Run("fifo", options=of(shape)) for shape in (8, 16))
"""
    assert [run.options["shape"] for run in declared_in(text)] == [8, 16]
    assert declared_in("x = 1\n") == ()
