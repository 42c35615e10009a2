"""The energy of a run by part, in gate equivalents that switch, under every set of assumptions; and an index of two."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sim.energy.core.spent import spent_of_core
from sim.energy.fabric.spent import spent_of_fabric
from sim.energy.figures import LEVELS, Figures
from sim.energy.prices import Prices
from sim.energy.values import KINDS, TYPICAL
from sim.errors import PlexusError

__all__ = ["ASSUMPTIONS", "Assumption", "Energy", "Index", "energy_of", "index_of", "need_events"]


@dataclass(frozen=True, slots=True)
class Assumption:
    """What is not known, chosen: the kind of data, and low, typical or high of each stated figure; `bits`: of one that
    leaves the chip."""

    data: str = TYPICAL
    anchor: str = "typical"
    clock: str = "typical"
    sram: str = "typical"
    bits: str = "typical"


ASSUMPTIONS = tuple(itertools.starmap(Assumption, itertools.product(KINDS, LEVELS, LEVELS, LEVELS, LEVELS)))

Parts = dict[str, float]


@dataclass(frozen=True, slots=True)
class Energy:
    """`parts` by assumption, in gate equivalents that switch; `work`: by which an index divides them."""

    parts: Mapping[Assumption, Parts]
    work: float = 1.0

    def total(self, assumption: Assumption) -> float:
        """Of all parts."""
        return sum(self.parts[assumption].values())

    def shares(self) -> dict[str, tuple[float, float, float]]:
        """Of each part: low, typical and high share of the whole."""
        found: dict[str, tuple[float, float, float]] = {}
        for part in self.parts[Assumption()]:
            of = {a: parts[part] / (self.total(a) or 1.0) for a, parts in self.parts.items()}
            found[part] = (min(of.values()), of[Assumption()], max(of.values()))
        return found


@dataclass(frozen=True, slots=True)
class Index:
    """Energy of a run over that of a base: of the typical assumption, and the least and the most of all, each the same
    for both runs."""

    low: float
    typical: float
    high: float


def need_events(report: Mapping[str, Any]) -> None:
    """PlexusError unless a report says what all of its run did."""
    if "events" not in report:
        raise PlexusError("the report has no events: it was made by an earlier version; run it again")
    if report["end"] != "done":
        why = report.get("end_message", report["end"])
        raise PlexusError(f"the run did not end ({why}), so nobody knows which events it had")


def energy_of(report: Mapping[str, Any], table: Mapping[str, Any], figures: Figures) -> Energy:
    """Of a run, from its report.json and the table of events of its configuration (sim.energy.table).

    Errors: PlexusError for a report without events, of a run that did not end, or a table of other hardware.
    """
    need_events(report)
    price = Prices(table)
    try:
        spent = (spent_of_core if "engines" in report else spent_of_fabric)(report, table)
    except (KeyError, TypeError, AttributeError) as error:
        raise PlexusError(f"the report or its table of events is not whole: {error}; make it anew") from None
    found: dict[Assumption, Parts] = {}
    for a in ASSUMPTIONS:
        pj = figures.pj_a_toggle(price.of("fp32 add", a.data), price.of("fp32 multiply", a.data), a.anchor)
        parts = dict(spent.logic[a.data])
        parts |= {f"clock, {name}": ge * figures.clocked(a.clock) for name, ge in spent.clocked.items()}
        for rows in spent.rows:
            row = figures.sram_pj(rows.bits, rows.macro_bytes, a.sram) / pj
            parts[rows.part] = parts.get(rows.part, 0.0) + rows.count * row
        parts |= {what: count * figures.bit_pj(what, a.bits) / pj for what, count in spent.bits.items()}
        found[a] = parts
    return Energy(found, spent.work)


def index_of(run: Energy, base: Energy) -> Index:
    """What is wrong with an assumption is so in both, so it goes out where the runs are alike."""
    ratios = {a: run.total(a) / run.work / (base.total(a) / base.work or 1.0) for a in ASSUMPTIONS}
    return Index(min(ratios.values()), ratios[Assumption()], max(ratios.values()))
