"""A few mutants of small units: none survives that the plan does not know. `make mutants` tries all of all."""

import os

import pytest

from sim.toolchain import activate
from verif.mutants.insert import MutantModel
from verif.mutants.measure import measure
from verif.mutants.plan import read_scores, survivors, waivers
from verif.mutants.units import SAMPLE, units

MODULE = "verif.mutants.measure"
"""Named, so that a kept verdict depends on it."""
MUTANTS = 4

UNITS = {unit.top: unit for unit in units() if unit.top in SAMPLE}


@pytest.mark.parametrize("name", SAMPLE)
def test_mutants_are_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as the score of the plan asks; those of the sample have 95 % or more."""
    monkeypatch.setenv("PATH", os.environ["PATH"])  # activate changes it
    activate()
    measured = measure(UNITS[name], MutantModel(40, 1), first=MUTANTS)
    left = survivors(measured, waivers())
    floor = read_scores()[name]
    assert floor.percent >= 95 and len(measured.tried) == MUTANTS
    assert len(left) <= floor.survived, "; ".join(f"survives: {t.mutant}" for t in left)
    assert measured.count("failed", "hung", "crashed") > 0
