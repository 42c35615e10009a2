"""The energy of a run by part, in gate equivalents that switch, under every set of assumptions; and an index of two."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rtl.contract.activation_tables import FIRST_TABLE_FUNCTION
from rtl.contract.isa import Function
from sim.energy.figures import LEVELS, Figures
from sim.energy.values import KINDS, TYPICAL
from sim.errors import PlexusError

__all__ = ["ASSUMPTIONS", "Assumption", "Energy", "Index", "clock_edges", "energy_of", "index_of", "need_events"]


@dataclass(frozen=True, slots=True)
class Assumption:
    """What is not known, chosen: the kind of data, and low, typical or high of each stated figure."""

    data: str = TYPICAL
    anchor: str = "typical"
    clock: str = "typical"
    sram: str = "typical"
    hbm: str = "typical"


ASSUMPTIONS = tuple(itertools.starmap(Assumption, itertools.product(KINDS, LEVELS, LEVELS, LEVELS, LEVELS)))
_CLOCK_TOGGLES = 2  # edges of a cycle
_NOT_CLOCKED = ("semaphore", "fetch", "fault")
_STAND_INS = {"special": "multiply add", "quantize": "compare"}
"""Units of the vector engine beside its lanes are not measured."""

Parts = dict[str, float]


@dataclass(frozen=True, slots=True)
class Energy:
    """`parts` by assumption, in gate equivalents that switch."""

    parts: Mapping[Assumption, Parts]

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


class _Prices:
    """Weighted toggles of events by kind of data."""

    def __init__(self, table: Mapping[str, Any]):
        self.rows = {row["event"]: row for row in table["events"]}

    def of(self, event: str, data: str) -> float:
        """Errors: PlexusError if the table has no such event."""
        row = self.rows.get(event)
        if row is None:
            raise PlexusError(f"the table of events has no {event!r}; make it anew with plexus energy CONFIG")
        return row[data]

    def beat(self, prefix: str, name: str, data: str) -> float:
        """Of a kind and format as counts.events_of names them; a format that is not measured costs what FP8 or the
        kind's first format does."""
        kind, fmt = name.rsplit(" ", 1)
        known = [event for event in self.rows if event.startswith(f"{prefix} {kind} ")]
        chosen = f"{prefix} {name}"
        if chosen not in known:
            alike = f"{prefix} {kind} e4m3fn" if fmt in ("e4m3", "e5m2") else ""
            chosen = alike if alike in known else known[0] if known else f"{prefix} one bf16"
        return self.of(chosen, data)

    def vector(self, name: str, data: str) -> float:
        """Of a beat of so many elements; between two that are measured on the line through them."""
        work, _, width = name.rpartition(" x")
        work = _STAND_INS.get(work, work)
        prefix = f"vector {work} x"
        known = sorted(int(event.removeprefix(prefix)) for event in self.rows if event.startswith(prefix))
        if not known:
            return self.of(f"{prefix}{width}", data)
        first, last = (self.of(f"{prefix}{n}", data) for n in (known[0], known[-1]))
        if known[0] == known[-1]:
            return first
        return first + (last - first) * (int(width) - known[0]) / (known[-1] - known[0])


def _logic(events: Mapping[str, Any], price: _Prices, data: str) -> Iterator[tuple[str, float]]:
    def of(group: str, each: Callable[[str], float]) -> float:
        return sum(count * each(name) for name, count in events[group].items())

    yield (
        "tensor",
        (
            of("pe_beats", lambda name: price.beat("beat", name, data))
            + of("pe_loads", lambda _: price.of("load", data))
            + of("pe_passes", lambda _: price.of("pass", data))
            + of("row_beats", lambda name: price.beat("unpack", name, data))
        ),
    )
    yield "psum adders", of("psum_adds", lambda name: price.of(f"psum {name}", data))
    yield "vector", of("vector_beats", lambda name: price.vector(name, data))

    def function(name: str) -> float:
        return price.of("scalar table" if Function[name.upper()] >= FIRST_TABLE_FUNCTION else "scalar plain", data)

    yield "scalar", of("scalar_elements", function)


def clock_edges(report: Mapping[str, Any]) -> dict[str, float]:
    """Edges of each clock in a run: of the root clock all cycles, of an engine's those in which it is at work."""
    cycles = report["cycles"]
    edges: dict[str, float] = {"root": cycles}
    asleep = 1.0
    for name in ("tensor", "vector", "scalar", "dma"):
        engine = report["engines"][name]
        stalls = sum(count for cause, count in engine["stall"].items() if cause not in _NOT_CLOCKED)
        awake = engine["busy"] + stalls
        asleep *= 1 - awake / max(1, cycles)
        section = report["config_resolved"].get(name, {})
        root = report["config_resolved"]["tensor"]["clock_mhz"]
        edges[name] = awake * section.get("clock_mhz", root) / root
    edges["memory"] = cycles * (1 - asleep)  # with any of them, as if they did not know of each other
    return edges


def _rams(report: Mapping[str, Any], table: Mapping[str, Any]) -> Iterator[tuple[str, int, float, int]]:
    """Part, bits of a row, bytes of its macro, rows read and written."""
    events = report["events"]

    def rows(*groups: str) -> int:
        return sum(sum(events[group].values()) for group in groups)

    counted = {
        "sbuf": rows("sbuf_rows_read", "sbuf_rows_written"),
        "psum": rows("psum_rows_read", "psum_rows_written"),
        "table": rows("table_rows_read"),
    }
    for name, macros in table["rams"].items():
        for macro in macros:
            count = counted.get(name)
            if count is None:  # through a buffer: written and read once
                count = -(-2 * 8 * events["dma_bytes"] // macro["bits"])
            yield name, macro["bits"], macro["macro_bytes"], count


def need_events(report: Mapping[str, Any]) -> None:
    """PlexusError unless a report says what all of its run did."""
    if "events" not in report:
        raise PlexusError(
            "the report has no events: it was made by an earlier version, or is not of a core; run it again"
        )
    if report["end"] != "done":
        raise PlexusError(f"the run did not end ({report['end_message']}), so nobody knows which events it had")


def energy_of(report: Mapping[str, Any], table: Mapping[str, Any], figures: Figures) -> Energy:
    """Of a run, from its report.json and the table of events of its configuration (sim.energy.table).

    Errors: PlexusError for a report without events, of a run that did not end, or a table of other hardware.
    """
    need_events(report)
    price = _Prices(table)
    edges = clock_edges(report)
    hbm_bits = 8 * (report["hbm_bytes_read"] + report["hbm_bytes_written"])
    rams = list(_rams(report, table))
    logic = {data: dict(_logic(report["events"], price, data)) for data in KINDS}
    clocked = {
        name: count * table["registers"][name]["flip_flops"] * _CLOCK_TOGGLES * table["clock_ge"]
        for name, count in edges.items()
    }
    found: dict[Assumption, Parts] = {}
    for a in ASSUMPTIONS:
        pj = figures.pj_a_toggle(price.of("fp32 add", a.data), price.of("fp32 multiply", a.data), a.anchor)
        parts = dict(logic[a.data])
        parts |= {f"clock, {name}": count * figures.clocked(a.clock) for name, count in clocked.items()}
        for name, bits, size, count in rams:
            parts[name] = parts.get(name, 0.0) + count * figures.sram_pj(bits, size, a.sram) / pj
        parts["hbm"] = hbm_bits * figures.hbm_pj(a.hbm) / pj
        found[a] = parts
    return Energy(found)


def index_of(run: Energy, base: Energy) -> Index:
    """What is wrong with an assumption is so in both, so it goes out where the runs are alike."""
    ratios = {a: run.total(a) / (base.total(a) or 1.0) for a in ASSUMPTIONS}
    return Index(min(ratios.values()), ratios[Assumption()], max(ratios.values()))
