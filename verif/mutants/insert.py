"""Yosys makes one model of a unit and its mutants: an input `plant` of the top chooses which one acts, 0 is none."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rtl.emit.netlist import netlist_of
from rtl.emit.verilog import Emitted
from sim.build.sources import sources_of
from sim.build.step import run_step
from sim.errors import PlexusError
from sim.progress import Progress
from sim.toolchain import ROOT, environment
from verif.mutants.mutant import Mutant, parse
from verif.mutants.own import own_cells

__all__ = [
    "LARGEST_CELLS",
    "MutantModel",
    "PREPARED",
    "TooLargeError",
    "black_boxes",
    "name_of",
    "read_mutants",
    "run_yosys",
]

LARGEST_CELLS = 200_000
"""Of a flat netlist: Yosys lists every mutant of every bit before it draws from them, some 10 KiB a cell."""
PREPARED = "prepared.il"
"""In the folder of a build: the flat netlist that the mutants are in."""
_MUTANTS = "mutants.json"
_BOXES = "boxes.txt"
_OWN = "own.txt"
_PIN = "plant"
_BY = sources_of(["verif.mutants.insert"]).digest
"""Of the code that runs: a file that is edited meanwhile is not in it."""


class TooLargeError(PlexusError):
    """A unit with more cells than LARGEST_CELLS."""


def run_yosys(folder: Path, name: str, commands: Sequence[str], log: Path, step: Progress) -> None:
    """Run a script in `folder`, its words into `log`. Errors: BuildError."""
    script = folder / f"{name}.ys"
    script.write_text("\n".join(commands) + "\n")
    run_step([environment()["YOSYS"], "-q", "-s", script.name], folder, log, step, f"Yosys ({name})")


def black_boxes(folder: Path) -> list[str]:
    """Commands that read the ports of the cells that a prepared netlist places."""
    return [f"read_verilog -sv -lib {ROOT / name}" for name in (folder / _BOXES).read_text().split()]


def name_of(number: int) -> str:
    """What a run of a bench calls the mutant that the input chooses by this number, which is at least 1."""
    return f"mutant {number}"


def read_mutants(folder: Path) -> list[Mutant]:
    """The mutants in a build's model: the first is chosen by 1."""
    return [Mutant.of(values) for values in json.loads((folder / _MUTANTS).read_text())]


@dataclass(frozen=True, slots=True)
class MutantModel:
    """What sim.build makes instead of a unit's own Verilog: `count` mutants, drawn with `seed` from the cells of
    `files` (own.py), or from all."""

    count: int
    seed: int
    files: frozenset[str] = frozenset()

    @property
    def key(self) -> Mapping[str, Any]:
        """All that decides what comes out, beside the unit."""
        return {"mutants": self.count, "seed": self.seed, "files": sorted(self.files), "by": _BY}

    def emit(self, component: Any, folder: Path, step: Progress) -> Emitted:
        """The unit's netlist with its mutants. Leaves the netlist without and the list of them in `folder`.

        Errors: TooLargeError; BuildError with Yosys's words.
        """
        step.stage("mutants")
        log = folder / "build.log"
        cells = self._prepare(component, folder, log, step)
        mutants = self._draw(folder, log, step)
        (folder / _MUTANTS).write_text(json.dumps([mutant.as_dict() for mutant in mutants]))
        insert = [mutant.command("top", _PIN, value) for value, mutant in enumerate(mutants, 1)]
        run_yosys(
            folder,
            "insert",
            [
                *black_boxes(folder),
                f"read_rtlil {PREPARED}",
                *insert,
                "attrmap -remove src",
                "attrmap -modattr -remove src",
                "write_verilog -norename mutated.v",
            ],
            log,
            step,
        )
        text = (folder / "mutated.v").read_text()
        (folder / "mutated.v").unlink()
        names = tuple(name_of(number) for number in range(1, len(mutants) + 1))
        return Emitted(top="top", own_text=text, placed_text="", sources=cells, hier_blocks=(), faults=names)

    def _prepare(self, component: Any, folder: Path, log: Path, step: Progress) -> tuple[Path, ...]:
        """Write the flat netlist, without what nothing reads; returns the cells that it places."""
        netlist = netlist_of(component, "top", located=True)
        read = []
        for number, text in enumerate(netlist.modules):
            (folder / f"part{number}.il").write_text(text)
            read.append(f"read_rtlil part{number}.il")
        for number, text in enumerate(netlist.wrappers):
            (folder / f"lanes{number}.v").write_text(text)
            read.append(f"read_verilog lanes{number}.v")
        (folder / _BOXES).write_text("\n".join(str(p.relative_to(ROOT)) for p in netlist.black_boxes))
        tidy = ["opt_expr", "opt_muxtree", "opt_clean"]
        flat = [
            "hierarchy -top top -check",
            "proc",
            "flatten",
            "memory_collect",
            *tidy,
            *tidy,
            f"write_rtlil {PREPARED}",
        ]
        run_yosys(folder, "prepare", [*black_boxes(folder), *read, *flat], log, step)
        for path in [*folder.glob("part*.il"), *folder.glob("lanes*.v")]:
            path.unlink()
        count = len(re.findall(r"^  cell ", (folder / PREPARED).read_text(), re.M))
        if count > LARGEST_CELLS:
            raise TooLargeError(f"it has {count:,} cells, and at most {LARGEST_CELLS:,} are taken")
        return netlist.cells

    def _draw(self, folder: Path, log: Path, step: Progress) -> list[Mutant]:
        """Ask for more until enough are none of a clock."""
        prepared = (folder / PREPARED).read_text()
        chosen = own_cells(prepared, self.files)
        (folder / _OWN).write_text("".join(f"top/{cell}\n" for cell in chosen))
        select = [f"select -read {_OWN}"] if chosen else []
        asked = self.count
        while True:
            listing = [*select, f"mutate -list {asked} -seed {self.seed} -o mutants.txt"]
            run_yosys(folder, "draw", [*black_boxes(folder), f"read_rtlil {PREPARED}", *listing], log, step)
            listed = (folder / "mutants.txt").read_text()
            mutants = parse(listed, prepared)
            if len(mutants) >= self.count or len(listed.splitlines()) < asked:
                (folder / "mutants.txt").unlink()
                (folder / _OWN).unlink()
                return mutants[: self.count]
            asked += self.count - len(mutants)
