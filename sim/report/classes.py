"""What a report says of traffic classes of the DMA: bytes, rate, share beside the others, latency, from the trace."""

from typing import Any

import numpy as np

from firmware.program import Program
from rtl.contract.config_sections import DmaConfig
from rtl.contract.timing import DMA_STRICT_WINDOW
from sim.trace.recorded import NEVER, Recorded

__all__ = ["classes_of_report"]


def _moved(begin: np.ndarray, end: np.ndarray, size: np.ndarray, window: tuple[int, int]) -> float:
    """Bytes of the window, each descriptor's evenly between its begin, or the end before it, and its own end."""
    order = np.argsort(end, kind="stable")
    begin, end, size = begin[order], end[order], size[order]
    first = np.minimum(np.maximum(begin, np.concatenate([begin[:1], end[:-1]])), end - 1)
    inside = np.minimum(end, window[1]) - np.maximum(first, window[0])
    return float((size * np.clip(inside, 0, None) / (end - first)).sum())


def _entitled(cfg: DmaConfig, used: list[int]) -> list[float]:
    """Shares of the classes in use while all of them wait, as docs/dma.md (Classes) says."""
    if cfg.priority:
        return [float(c == min(used)) for c in used]
    strict = cfg.strict_class if cfg.strict_class in used and len(used) > 1 else -1
    cap = cfg.strict_cap / DMA_STRICT_WINDOW if strict >= 0 else 0.0
    total = sum(cfg.weights[c] for c in used if c != strict)
    return [cap if c == strict else (1 - cap) * cfg.weights[c] / total for c in used]


def classes_of_report(cfg: DmaConfig, program: Program, recorded: Recorded | None) -> list[dict[str, Any]]:
    """A row for each class whose descriptors have completed; none without a trace, or if it was full before the end.

    `share` is of the bytes that moved while all of these classes were under way, `contested_cycles` how long they were,
    `entitled` what the configuration gives. `latency_cycles`: from when a descriptor is taken to when it has completed.
    """
    if recorded is None or recorded.coarse_from < recorded.cycles:  # of some descriptors it tells no end
        return []
    known = [d.class_ for d in program.copies()]
    classes = np.array(known, np.int64)
    ended = (recorded.copy_begin != NEVER) & (recorded.copy_end != NEVER)
    used = [int(c) for c in np.unique(classes[ended])]
    if not used:
        return []
    mine = {c: ended & (classes == c) for c in used}
    begins = {c: int(recorded.copy_begin[mine[c]].min()) for c in used}
    ends = {c: int(recorded.copy_end[mine[c]].max()) for c in used}
    window = (max(begins.values()), max(max(begins.values()), min(ends.values())))
    moved = [
        _moved(recorded.copy_begin[mine[c]], recorded.copy_end[mine[c]], recorded.copy_bytes[mine[c]], window)
        for c in used
    ]
    rows: list[dict[str, Any]] = []
    for c, part, entitled in zip(used, moved, _entitled(cfg, used), strict=True):
        size = int(recorded.copy_bytes[mine[c]].sum())
        waits = recorded.copy_end[mine[c]] - recorded.copy_begin[mine[c]]
        rows.append(
            {
                "class": c,
                "descriptors": int(mine[c].sum()),
                "bytes": size,
                "bytes_per_cycle": round(size / max(1, ends[c] - begins[c]), 3),
                "share": round(part / sum(moved), 4) if sum(moved) else 0.0,
                "entitled": round(entitled, 4),
                "contested_cycles": window[1] - window[0],
                "latency_cycles": {
                    "least": int(waits.min()), "median": int(np.median(waits)), "most": int(waits.max())
                },
            }
        )  # fmt: skip
    return rows
