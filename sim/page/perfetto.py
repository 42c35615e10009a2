"""A trace as Chrome's JSON, gzip: what ui.perfetto.dev and chrome://tracing open."""

import gzip
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rtl.contract.isa import Opcode, Queue
from rtl.contract.memmap import Space
from rtl.contract.timing import Engine
from sim.native.tracing import TRACE_BEATS_CYCLES
from sim.trace.cores import CORE_STATES, core_intervals, cores_that_ran
from sim.trace.critical import semaphore_edges
from sim.trace.intervals import STATES, engine_intervals, mask_intervals
from sim.trace.occupancy import bytes_held
from sim.trace.recorded import NEVER, Recorded
from sim.trace.rings import ring_name
from sim.whole_file import whole_file

__all__ = ["perfetto_events", "write_perfetto"]

_CORE = 1  # the process
_ENGINES, _RINGS, _MOVERS, _CORES = 10, 20, 40, 60  # first thread of each kind; queues begin at 1
_QUEUES = 1

Event = dict[str, Any]


class _Events:
    """Cycles to microseconds, and back in `args` where a number must be exact."""

    def __init__(self, recorded: Recorded, clock_mhz: int):
        self.r = recorded
        self.clock_mhz = clock_mhz

    def _event(self, ph: str, tid: int, cycle: int, name: str, **more: Any) -> Event:
        return {"ph": ph, "pid": _CORE, "tid": tid, "ts": cycle / self.clock_mhz, "name": name, **more}

    def _slice(self, tid: int, begin: int, end: int, name: str, **args: Any) -> Event:
        told = {"cycle": begin, "cycles": end - begin, **args}
        return self._event("X", tid, begin, name, dur=(end - begin) / self.clock_mhz, cat="plexus", args=told)

    def threads(self) -> Iterator[Event]:
        names = {_QUEUES + q: f"queue {q.name.lower()}" for q in Queue}
        names |= {_ENGINES + e: f"engine {e.name.lower()}" for e in Engine}
        names |= {_RINGS + r: ring_name(r) for r in sorted(set(self.r.copy_ring.tolist()))}
        names |= {_MOVERS + m: f"mover {m}" for m in self.movers()}
        names |= {_CORES + core: f"core gp{core}" for core in cores_that_ran(self.r)}
        yield {"ph": "M", "pid": _CORE, "tid": 0, "ts": 0, "name": "process_name", "args": {"name": "core"}}
        for tid, name in names.items():
            yield {"ph": "M", "pid": _CORE, "tid": tid, "ts": 0, "name": "thread_name", "args": {"name": name}}

    def movers(self) -> list[int]:
        """Those that ever had work."""
        used = int(self.r.movers_busy.max()) if len(self.r.movers_busy) else 0
        return [m for m in range(16) if used >> m and (self.r.movers_busy >> m & 1).any()]

    def items(self) -> Iterator[Event]:
        """Instructions, each until the next of its queue goes or it has retired: slices of a track must not overlap."""
        r = self.r
        for queue in Queue:
            mine = [n for n in r.items_of(queue).tolist() if r.item_issue[n] != NEVER]
            for n, following in zip(mine, (mine + [NEVER])[1:], strict=True):
                begin = int(r.item_issue[n])
                end = int(r.item_retire[n]) if r.item_retire[n] != NEVER else r.cycles
                program, turn = (r.text(int(of[n])) for of in (r.item_program_text, r.item_turn_text))
                if following != NEVER:
                    end = min(end, int(r.item_issue[following]))
                yield self._slice(
                    _QUEUES + queue,
                    begin,
                    max(end, begin + 1),
                    " ".join(filter(None, (Opcode(int(r.item_opcode[n])).name.lower(), program))),
                    sequence=int(r.item_sequence[n]),
                    retired=int(r.item_retire[n]),
                    line=r.text(int(r.item_line_text[n])),
                    shape=r.text(int(r.item_shape_text[n])),
                    **({"turn": turn} if turn else {}),
                )

    def states(self) -> Iterator[Event]:
        for engine in Engine:
            for begin, end, state in engine_intervals(self.r, engine).tolist():
                yield self._slice(_ENGINES + engine, begin, end, STATES[engine][state])
        for core in cores_that_ran(self.r):
            for begin, end, state in core_intervals(self.r, core).tolist():
                yield self._slice(_CORES + core, begin, end, CORE_STATES[state])

    def copies(self) -> Iterator[Event]:
        """Descriptors of a ring overlap: asynchronous slices."""
        r = self.r
        for n in range(len(r.copy_ring)):
            if r.copy_begin[n] == NEVER:
                continue
            tid, name = _RINGS + int(r.copy_ring[n]), f"copy {int(r.copy_index[n])}"
            end = int(r.copy_end[n]) if r.copy_end[n] != NEVER else r.cycles
            args = {
                "bytes": int(r.copy_bytes[n]),
                "line": r.text(int(r.copy_line_text[n])),
                "shape": r.text(int(r.copy_shape_text[n])),
            }
            yield self._event("b", tid, int(r.copy_begin[n]), name, id=n, cat="copy", args=args)
            yield self._event("e", tid, end, name, id=n, cat="copy")

    def moving(self) -> Iterator[Event]:
        for mover in self.movers():
            spans = mask_intervals(self.r.movers_cycle, self.r.movers_busy, mover, self.r.coarse_from)
            for begin, end, _ in spans.tolist():
                yield self._slice(_MOVERS + mover, begin, end, "busy")

    def counters(self, port_bytes: int) -> Iterator[Event]:
        for n, (read, written) in enumerate(self.r.beats.tolist()):
            args = {"read": read * port_bytes, "written": written * port_bytes}
            yield self._event("C", 0, n * TRACE_BEATS_CYCLES, f"HBM bytes in {TRACE_BEATS_CYCLES} cycles", args=args)
        for space in (Space.SBUF, Space.PSUM):
            for cycle, held in zip(*(column.tolist() for column in bytes_held(self.r, space)), strict=True):
                yield self._event("C", 0, cycle, f"{space.name} bytes held", args={"held": held})

    def flows(self) -> Iterator[Event]:
        """From the end of what brought a condition to the issue that waited for it."""
        r = self.r
        for number, (item, cycle, by_item, by_copy) in enumerate(semaphore_edges(r)):
            if r.item_issue[item] == NEVER:
                continue
            from_ = _QUEUES + int(r.item_queue[by_item]) if by_item != NEVER else _RINGS + int(r.copy_ring[by_copy])
            yield self._event("s", from_, max(0, cycle - 1), "semaphore", id=number, cat="semaphore")
            to = _QUEUES + int(r.item_queue[item])
            yield self._event("f", to, int(r.item_issue[item]), "semaphore", id=number, cat="semaphore", bp="e")


def perfetto_events(report: Mapping[str, Any], recorded: Recorded) -> list[Event]:
    """All events of a run. `ts` and `dur` are microseconds of the machine; `args` of slices have cycles."""
    cfg = report["config_resolved"]
    events = _Events(recorded, cfg["tensor"]["clock_mhz"])
    parts = (events.threads(), events.items(), events.states(), events.copies(), events.moving())
    return [event for part in (*parts, events.counters(cfg["hbm"]["port_bytes"]), events.flows()) for event in part]


def write_perfetto(report: Mapping[str, Any], recorded: Recorded, path: Path) -> None:
    """Errors: PlexusError if `path` cannot be written, and then nothing is there."""
    whole = {"displayTimeUnit": "ns", "traceEvents": perfetto_events(report, recorded)}
    with whole_file(path) as place:
        place.write_bytes(gzip.compress(json.dumps(whole, separators=(",", ":")).encode(), 6, mtime=0))
