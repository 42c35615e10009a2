"""Code coverage: with PLEXUS_COVERAGE=1 a bench runs on a model that counts lines and toggles.

The model is one of its own, made from the Verilog of the product: no planted faults are in it, so a run with one is
made on its usual model and counts nothing. verif/checks/code_coverage.py adds up what the runs leave.
"""

import dataclasses
import gzip
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

__all__ = ["COVERAGE", "DATA", "FLAGS", "PLACES", "counting", "pack", "uncounted", "write_places"]

COVERAGE = "PLEXUS_COVERAGE"
"""The environment variable that asks for it."""
FLAGS = ("--coverage-line", "--coverage-toggle")
"""For Verilator, which leaves out signals of more than 256 bits."""
PLACES = "places.json"
"""In the folder of a build: where the names in its Verilog come from."""
DATA = "coverage.dat.gz"
"""In the folder of a run: Verilator's counts, which are 20 times as long unpacked."""

_UNCOUNTED = re.compile(
    r"  (?:input|output|inout|wire|reg) .*(?:\\\$|\\port\$)\S+ .*;$"  # a net or a port that an expression made
    r"|    if \(\\\$auto\S+ \) begin end$"  # what only starts a process
)


def counting() -> bool:
    """Whether runs of benches shall be counted."""
    return os.environ.get(COVERAGE, "").lower() in ("1", "true", "yes")


def uncounted(verilog: str) -> Iterator[tuple[int, int]]:
    """First and last line of each part of emitted Verilog that nobody wrote, whose counts would say nothing."""
    first = 0
    lines = verilog.split("\n")
    for number, line in enumerate([*lines, ""], 1):
        if _UNCOUNTED.fullmatch(line):
            first = first or number
        elif first:
            yield first, number - 1
            first = 0


def write_places(places: Mapping[str, Any], folder: Path) -> None:
    """Leave where names come from (rtl.emit.located.Places) beside the Verilog."""
    (folder / PLACES).write_text(json.dumps({name: dataclasses.asdict(place) for name, place in places.items()}))


def pack(folder: Path) -> None:
    """Of a green run: its counts in less room. Those of a run that failed stay as they are, and do not count."""
    plain = folder / "coverage.dat"
    with plain.open("rb") as data, gzip.open(folder / DATA, "wb", compresslevel=1) as packed:
        shutil.copyfileobj(data, packed)
    plain.unlink()
