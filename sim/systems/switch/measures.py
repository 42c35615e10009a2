"""What a run of a switch comes to: verdict, rates and latencies from the driver's counts."""

from collections.abc import Mapping, Sequence
from typing import Any

from rtl.contract.lanes import LANE_WORD_BYTES
from rtl.contract.switch_config import SwitchConfig
from sim.native.switch import SwitchCounts, SwitchTraffic
from sim.systems.quantiles import quantiles
from sim.systems.switch.shares import entitled, jain

__all__ = ["events_of", "fairness", "latencies", "rates", "verdict"]


def verdict(after: SwitchCounts, told: Mapping[str, int]) -> dict[str, Any]:
    """Of the whole run. Between ports whose sessions have held everything must have come; what came from or went to
    another may be missing, as far as somebody has told that it dropped it or does not know."""
    # A refused unit counts once, late and unresolved ones by the flit.
    explained = told["dead"] + told["late"] + told["link_unresolved"] + told["link_bad_unit"] + after.unresolved
    lost = after.lost + after.outstanding + max(0, after.unsettled - explained)
    bad = lost + after.duplicated + after.reordered + after.corrupted + after.misdelivered + after.odd
    return {
        "match": bad == 0,
        "end": "stuck" if after.outstanding or after.waiting_flits else "unresolved" if after.unsettled else "done",
        "units_sent": after.units_sent,
        "units_delivered": after.units_delivered,
        "flits_delivered": after.flits_delivered,
        "lost": lost,
        "duplicated": after.duplicated,
        "reordered": after.reordered,
        "corrupted": after.corrupted,
        "misdelivered": after.misdelivered,
        "protocol_errors": after.odd,
        "dropped": told["hole"] + told["partition"] + told["dead"],
        "dropped_flits": told["dropped"] + told["late"],
        "unsettled": after.unsettled,
        "unresolved": after.unresolved + told["link_unresolved"],
        "refused_flits": after.refused + told["link_refused"],
        "replays": after.replays + told["link_replay"],
        "spurious_replays": after.spurious + told["link_spurious"],
        "retrains": after.retrains + told["link_retrained"],
        "downs": after.downs + told["link_down"],
        "parity_errors": told["parity"] + told["responder_parity"],
    }


def rates(cfg: SwitchConfig, traffic: SwitchTraffic, marks: Sequence[tuple[str, SwitchCounts]]) -> dict[str, Any]:
    """Between the first and the last of `marks`: counts behind each event."""
    begin, end = marks[0][1], marks[-1][1]
    slots = (end.cycles - begin.cycles) / cfg.slot_cycles
    sources = _more(begin.by_source, end.by_source)
    outputs = _more(begin.by_output, end.by_output)
    classes = _more(begin.by_class, end.by_class)[: len(traffic.weights)]
    flits = sum(outputs)
    senders = traffic.senders if traffic.traffic == "hotspot" else cfg.ports
    senders -= traffic.silent_port >= 0 and traffic.traffic != "hotspot"
    return {
        "slots": round(slots),
        "throughput": round(flits / (cfg.ports * slots), 6),
        "offered": round((end.offered_flits - begin.offered_flits) / (cfg.ports * slots), 6),
        "blocked": round((end.blocked_flits - begin.blocked_flits) / (cfg.ports * slots), 6),
        "jain": jain(sorted(sources)[-senders:]),
        "class_share": [round(n / max(1, flits), 6) for n in classes],
        "by_source": [round(n / slots, 6) for n in sources],
        "by_output": [round(n / slots, 6) for n in outputs],
        "others_kept": _kept(traffic.silent_port, marks),
    }


def events_of(cfg: SwitchConfig, begin: SwitchCounts, end: SwitchCounts) -> dict[str, int]:
    """What has happened in the switch between the two (docs/energy.md). A flit begins at each port in each slot, both
    ways; those that it sends again are as many as are sent again to it, for both ways are damaged alike."""
    cycles, beats = end.cycles - begin.cycles, cfg.link.beats
    resent = end.resent - begin.resent
    stored = sum(_more(begin.by_output, end.by_output))
    return {
        "cycles": cycles,
        "devices": 1,
        "outputs": cfg.outputs,
        "beats": cycles // cfg.slot_cycles * cfg.ports * beats,
        "payload_beats": (stored + resent) * beats,
        "stored_beats": stored * beats,
        "crossbar_beats": stored * beats,
        "wire_bits": 2 * cycles * cfg.ports * 8 * LANE_WORD_BYTES * cfg.link.lanes,
    }


def fairness(traffic: SwitchTraffic, classes: Sequence[int], begin: SwitchCounts, end: SwitchCounts) -> dict[str, Any]:
    """What the sources of a hot output got against what they are entitled to; classes: bits by source, 0 silent."""
    if traffic.traffic != "hotspot":
        return {"entitled": None, "jain_entitled": None}
    shares = entitled(classes, traffic.weights, traffic.strict_class, traffic.strict_cap)
    served = [n / share for n, share in zip(_more(begin.by_source, end.by_source), shares, strict=True) if share]
    return {"entitled": [round(share, 6) for share in shares], "jain_entitled": jain(served)}


def _more(before: Sequence[int], after: Sequence[int]) -> list[int]:
    return [a - b for b, a in zip(before, after, strict=True)]


def _kept(dead: int, marks: Sequence[tuple[str, SwitchCounts]]) -> float | None:
    """Rate of the other outputs after a port was taken out, as a share of that before."""
    at = {kind: n for n, (kind, _) in enumerate(marks)}
    if dead < 0 or "settled" not in at:
        return None

    def rate(first: SwitchCounts, last: SwitchCounts) -> float:
        came = _more(first.by_output, last.by_output)
        return (sum(came) - came[dead]) / max(1, last.cycles - first.cycles)

    before = rate(marks[0][1], marks[at["out"]][1])
    after = rate(marks[at["settled"]][1], marks[at["settled"] + 1][1])
    return round(after / before, 6) if before else None


def latencies(
    cfg: SwitchConfig, by_class: Sequence[Sequence[int]], by_phase: Sequence[Sequence[int]], most: int
) -> dict[str, Any]:
    """In link cycles, of units delivered: from the first beat at the pins of the switch to the first that leaves."""
    whole = [sum(column) for column in zip(*by_class, strict=True)]
    return {
        "latency_cycles": _quantiles(whole, most),
        "latency_by_class": [_quantiles(bins, None) for bins in by_class[: cfg.link.classes] if any(bins)],
        "latency_by_phase": [_quantiles(bins, None) for bins in by_phase],
    }


def _quantiles(bins: Sequence[int], most: int | None) -> dict[str, int]:
    return quantiles(bins, most) | {"units": sum(bins)}
