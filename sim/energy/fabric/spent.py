"""What a run of a link or a switch spent: beats of flits by their prices, edges of its clock, rows of its buffers, bits
on its wires; an index is by beats that came through."""

from collections.abc import Mapping
from typing import Any

from sim.energy.prices import Prices
from sim.energy.spent import CLOCK_TOGGLES, Rows, Spent
from sim.energy.values import KINDS

__all__ = ["spent_of_fabric"]

_CHECKS = ("crc check", "fec check")


def _logic(events: Mapping[str, int], price: Prices, data: str) -> dict[str, float]:
    nops = events["beats"] - events["payload_beats"]

    def both(name: str) -> float:
        payload, nop = (price.of(f"{name} {what}", data) for what in ("payload", "nop"))
        return events["payload_beats"] * payload + nops * nop

    found = {"encoders": both("encode"), "decoders": sum(both(name) for name in _CHECKS)}
    if "lane_cycles" in events:  # receiving costs what sending does
        found["lanes"] = 2 * events["lane_cycles"] * price.of("lanes", data)
    if "crossbar_beats" in events:
        found["crossbar"] = events["crossbar_beats"] / events["outputs"] * price.of("crossbar", data)
    return found


def spent_of_fabric(report: Mapping[str, Any], table: Mapping[str, Any]) -> Spent:
    """From report.json and the table of its configuration. Errors: PlexusError for an event without a price."""
    price, events = Prices(table), report["events"]
    edges = events["cycles"] * events["devices"] * CLOCK_TOGGLES * table["clock_ge"]
    rows = {
        "decoder buffer": 2 * events["beats"],  # written and read
        "retry buffer": events["stored_beats"] + events["payload_beats"],
        "send store": 2 * events["stored_beats"],
        "receive pool": 2 * events["stored_beats"],
    }
    return Spent(
        logic={data: _logic(events, price, data) for data in KINDS},
        clocked={"link": edges * table["registers"]["link"]["flip_flops"]},
        rows=[
            Rows(name, macro["bits"], macro["macro_bytes"], rows[name])
            for name, macros in table["rams"].items()
            for macro in macros
        ],
        bits={"wire": events["wire_bits"]},
        work=max(1, events["stored_beats"]),
    )
