"""Prices of a core's beats: events that are not measured have a stand-in, or lie on a line between two that are."""

from sim.energy.prices import Prices

__all__ = ["CorePrices"]

_STAND_INS = {"special": "multiply add", "quantize": "compare"}
"""Units of the vector engine beside its lanes are not measured."""


class CorePrices(Prices):
    """With beats of the array and of the vector engine as core.counts names them."""

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
