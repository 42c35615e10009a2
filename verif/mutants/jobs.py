"""Units measured side by side, each in a process with simulators of its own.

Not in __main__: a process that is started anew cannot import the functions of a package's __main__.
"""

import multiprocessing
import os
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial

from sim.errors import PlexusError
from verif.mutants.insert import MutantModel
from verif.mutants.measure import Measured, Tried, measure
from verif.mutants.unit import Unit

__all__ = ["measure_all"]


def _note(tried: Tried) -> None:
    print(f"  {tried.number:3d} {tried.fate:10s} {tried.mutant}", flush=True)
    if tried.told:
        print(f"      {tried.told}", flush=True)


def _one(
    unit: Unit, model: MutantModel, first: int, only: Sequence[int], proofs: bool, verbose: bool
) -> Measured | str:
    note = {"note": _note} if verbose else {}
    try:
        return measure(unit, model, first=first, only=only, proofs=proofs, **note)
    except PlexusError as error:
        return f"{error}"


def _end_with(parent: int) -> None:
    """A worker whose parent was killed does not work on in silence."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def measure_all(
    chosen: Sequence[Unit],
    model: MutantModel,
    *,
    first: int,
    only: Sequence[int],
    proofs: bool,
    verbose: bool,
    jobs: int,
) -> Iterator[tuple[Unit, Measured | str]]:
    """Each unit and what came of its mutants, or why there is no score; as they end, as a slow one holds up none."""
    one = partial(_one, model=model, first=first, only=only, proofs=proofs, verbose=verbose)
    if jobs == 1:
        yield from ((unit, one(unit)) for unit in chosen)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context, initializer=_end_with, initargs=(os.getpid(),)) as pool:
        begun = {pool.submit(one, unit): unit for unit in chosen}
        for ended in as_completed(begun):
            yield begun[ended], ended.result()
