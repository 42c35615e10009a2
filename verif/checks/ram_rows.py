"""How often RAM macros were read and written in a run, from its waves: enables at edges of their clocks."""

import re
from collections import defaultdict
from pathlib import Path

__all__ = ["ram_rows"]

_PINS = ("clk", "ren", "wen")


def _rams(lines: list[str]) -> dict[str, dict[str, str]]:
    """Signs of the pins of each RAM, by its way without the top."""
    scope: list[str] = []
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for line in lines:
        words = line.split()
        match words[:1]:
            case ["$scope"]:
                scope.append(words[2])
            case ["$upscope"]:
                scope.pop()
            case ["$var"] if scope[-1] == "storage" and words[4] in _PINS:
                found["/".join(scope[2:-1])][words[4]] = words[3]
    return found


def ram_rows(waves: Path) -> dict[str, tuple[int, int]]:
    """Reads and writes of each RAM in a VCD of a whole core, by its place, as "sbuf/group_0/instance/bank_1"."""
    head, _, body = waves.read_text().partition("$enddefinitions $end")
    rams = {name: pins for name, pins in _rams(head.splitlines()).items() if len(pins) == len(_PINS)}
    of_clock: dict[str, list[str]] = defaultdict(list)
    for name, pins in rams.items():
        of_clock[pins["clk"]].append(name)
    wanted = {sign for pins in rams.values() for sign in pins.values()}
    value: dict[str, str] = {}
    reads: dict[str, int] = dict.fromkeys(rams, 0)
    writes = dict(reads)
    for moment in re.split(r"^#\d+$", body, flags=re.M):
        now = {line[1:]: line[0] for line in moment.split("\n") if line[:1] in ("0", "1") and line[1:] in wanted}
        for clock in of_clock.keys() & now.keys():
            if now[clock] == "1" and value.get(clock) != "1":
                for name in of_clock[clock]:  # what an edge takes is there before it
                    reads[name] += value.get(rams[name]["ren"]) == "1"
                    writes[name] += value.get(rams[name]["wen"]) == "1"
        value |= now
    return {name: (reads[name], writes[name]) for name in rams}
