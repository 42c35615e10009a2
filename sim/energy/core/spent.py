"""What a run of a core spent: beats by their prices, edges of clocks, rows of RAM, bits of HBM."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rtl.contract.activation_tables import FIRST_TABLE_FUNCTION
from rtl.contract.isa import Function
from sim.energy.core.prices import CorePrices
from sim.energy.spent import CLOCK_TOGGLES, Rows, Spent
from sim.energy.values import KINDS

__all__ = ["clock_edges", "spent_of_core"]

_NOT_CLOCKED = ("semaphore", "fetch", "fault")


def _logic(events: Mapping[str, Any], price: CorePrices, data: str) -> Iterator[tuple[str, float]]:
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
    for name in ("tensor", "vector", "scalar", "gpsimd", "dma"):
        engine = report["engines"][name]
        stalls = sum(count for cause, count in engine["stall"].items() if cause not in _NOT_CLOCKED)
        awake = engine["busy"] + stalls
        asleep *= 1 - awake / max(1, cycles)
        section = report["config_resolved"].get(name, {})
        root = report["config_resolved"]["tensor"]["clock_mhz"]
        edges[name] = awake * section.get("clock_mhz", root) / root
    edges["memory"] = cycles * (1 - asleep)  # with any of them, as if they did not know of each other
    return edges


def _rams(report: Mapping[str, Any], table: Mapping[str, Any]) -> Iterator[Rows]:
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
            yield Rows(name, macro["bits"], macro["macro_bytes"], count)


def spent_of_core(report: Mapping[str, Any], table: Mapping[str, Any]) -> Spent:
    """From report.json and the table of its configuration. Errors: PlexusError for an event without a price."""
    price, registers = CorePrices(table), table["registers"]
    return Spent(
        logic={data: dict(_logic(report["events"], price, data)) for data in KINDS},
        clocked={
            name: count * registers[name]["flip_flops"] * CLOCK_TOGGLES * table["clock_ge"]
            for name, count in clock_edges(report).items()
        },
        rows=list(_rams(report, table)),
        bits={"hbm": 8 * (report["hbm_bytes_read"] + report["hbm_bytes_written"])},
    )
