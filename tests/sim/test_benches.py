"""Every run that a bench declares in its RUNS: green for every seed, and red with every planted fault.

`-k dma/` are the benches of a room, `-k dma/endpoint` one; a name says the top, what it is built with, and the fault.
"""

from collections.abc import Iterable
from typing import Any

import pytest

from sim.errors import PlexusError
from verif.collect import Item, declarations, items
from verif.launch import must_notice, must_pass

pytestmark = pytest.mark.sim

try:
    GREEN, FAULTY = items(declarations())
except PlexusError as error:
    raise pytest.Collector.CollectError(str(error)) from error


def each(found: Iterable[Item]) -> pytest.MarkDecorator:
    """A test of each; those of a model go to one worker."""
    return pytest.mark.parametrize("item", [pytest.param(i, id=str(i), marks=_marks(i)) for i in found])


def _marks(item: Item) -> list[Any]:
    run = item.declared.run
    marks = [pytest.mark.slow] * run.slow + [pytest.mark.regress] * run.regress
    return [pytest.mark.xdist_group(item.group), *marks]


@each(GREEN)
def test_bench(item: Item) -> None:
    run = item.declared.run
    must_pass(run.top, item.declared.bench, item.seed, run.config, planted=run.planted, options=run.options)


@each(FAULTY)
def test_fault(item: Item) -> None:
    run, fault = item.declared.run, item.fault
    must_notice(
        run.top, item.declared.bench, item.plant, run.config, options=run.options, testcase=fault.by, hangs=fault.hangs
    )
