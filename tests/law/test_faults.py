"""Names of planted faults: written where the fault is made, in words that mean this unit only; each is noticed."""

from collections import defaultdict

from sim.run.faults import VARIABLE, exists, written_faults
from verif.collect import declarations, items
from verif.formal.run import discover

WRITTEN = written_faults()
NAMES = {written.name: written for written in WRITTEN if written.name is not None}
LEAST_LETTERS = 20


def test_every_name_is_written_out() -> None:
    """So that a search finds the place; an f-string where instances differ."""
    wrong = [f"{written.file}:{written.line}" for written in WRITTEN if written.name is None]
    assert not wrong, f"a name of a fault is a text or an f-string, not what stands in {', '.join(wrong)}"
    assert len(NAMES) > 500


def test_a_name_means_one_unit() -> None:
    """A bench that plants it then knows what fails."""
    places = defaultdict(set)
    for written in WRITTEN:
        places[written.name].add(f"{written.file}, {written.unit}")
    wrong = [f"{name}: {'; '.join(sorted(where))}" for name, where in places.items() if len(where) > 1]
    assert not wrong, "\n".join(wrong)


def test_no_name_fits_the_pattern_of_another() -> None:
    patterns = [written for written in NAMES.values() if not written.fixed]
    wrong = [name for name in NAMES for pattern in patterns if name != pattern.name and pattern.may_be(name)]
    assert not wrong, "\n".join(wrong)


def test_a_name_is_a_piece_of_a_sentence() -> None:
    short = [name for name in NAMES if len(name.replace(VARIABLE, "")) < LEAST_LETTERS]
    assert not short, f"too short to mean one unit: {'; '.join(short)}"
    wrong = [name for name in NAMES if name != name.strip() or name.endswith(".")]
    assert not wrong, "; ".join(wrong)


def test_every_fault_is_noticed_by_a_bench_or_a_proof() -> None:
    _, faulty = items(declarations())
    noticed = {item.plant for item in faulty} | {name for proof in discover().values() for name in proof.faults}
    missed = [w.name for w in NAMES.values() if not any(w.may_be(name) for name in noticed)]
    assert not missed, f"nobody must notice: {'; '.join(map(str, missed))}"
    unknown = [name for name in noticed if not exists(name)]
    assert not unknown, f"no unit has: {'; '.join(unknown)}"
