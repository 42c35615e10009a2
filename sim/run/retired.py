"""Instructions that GPSIMD cores retired, from the waves of a run."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from sim.errors import PlexusError

__all__ = ["RETIRED_SCOPE", "RetiredInstruction", "retired_in"]

RETIRED_SCOPE = "gpsimd.pipeline.tile_{core}.instance.core"
"""Where a core is in the waves, as --waves-scope takes it; its port is `retired`, with the names of RVFI."""

_VALID = "retired_valid"
_SCOPE = re.compile(re.escape(RETIRED_SCOPE).replace(r"\{core\}", r"(\d)") + "$")
_FIELDS = (
    "order", "insn", "trap", "intr", "cause", "pc_rdata", "pc_wdata", "rs1_addr", "rs1_rdata", "rs2_addr", "rs2_rdata",
    "rd_addr", "rd_wdata", "mem_addr", "mem_rmask", "mem_wmask", "mem_rdata", "mem_wdata",
)  # fmt: skip
_UNKNOWN = str.maketrans("xXzZ", "0000")


@dataclass(frozen=True, slots=True)
class RetiredInstruction:
    """`cycle` of the run in which it is first at the port of its core; all else as RVFI names it."""

    cycle: int
    core: int
    order: int
    insn: int
    trap: int
    intr: int
    cause: int
    pc_rdata: int
    pc_wdata: int
    rs1_addr: int
    rs1_rdata: int
    rs2_addr: int
    rs2_rdata: int
    rd_addr: int
    rd_wdata: int
    mem_addr: int
    mem_rmask: int
    mem_wmask: int
    mem_rdata: int
    mem_wdata: int


class _Port:
    """The retirement port of a core."""

    def __init__(self, core: int):
        self.core = core
        self.values = dict.fromkeys((_VALID, *(f"retired.{field}" for field in _FIELDS)), 0)
        self._told: tuple[int, ...] = ()

    def look(self, cycle: int) -> RetiredInstruction | None:
        """What is there for the first time. The clock of a core that sleeps or has ended stands still, and with it the
        port; an instruction that traps has the number of the one behind it."""
        if not self.values[_VALID]:
            self._told = ()
            return None
        now = tuple(self.values[f"retired.{field}"] for field in _FIELDS)
        if now == self._told:
            return None
        self._told = now
        return RetiredInstruction(cycle, self.core, *now)


def _ports(head: TextIO) -> dict[str, list[tuple[_Port, str]]]:
    """By the sign of a signal whose port and value it is."""
    scope: list[str] = []
    ports: dict[int, _Port] = {}
    found: dict[str, list[tuple[_Port, str]]] = {}
    for line in head:
        words = line.split()
        if words[:1] == ["$scope"]:
            scope.append(words[2])
        elif words[:1] == ["$upscope"]:
            scope.pop()
        elif words[:1] == ["$enddefinitions"]:
            break
        elif words[:1] == ["$var"] and (core := _SCOPE.search(".".join(scope))):
            port = ports.setdefault(int(core[1]), _Port(int(core[1])))
            if words[4] in port.values:
                found.setdefault(words[3], []).append((port, words[4]))
    return found


def _rows(body: TextIO, wanted: dict[str, list[tuple[_Port, str]]]) -> Iterator[RetiredInstruction]:
    ports = list({id(port): port for uses in wanted.values() for port, _ in uses}.values())
    half = 0
    for line in body:
        if line[:1] == "#":
            yield from (row for port in ports if (row := port.look((half + 1) // 2)) is not None)
            half = int(line[1:])
        elif line[:1] == "b":
            bits, sign = line[1:].split()
            for port, name in wanted.get(sign, ()):
                port.values[name] = int(bits.translate(_UNKNOWN), 2)
        elif line[:1] in ("0", "1"):
            for port, name in wanted.get(line[1:].strip(), ()):
                port.values[name] = int(line[0])
    yield from (row for port in ports if (row := port.look((half + 1) // 2)) is not None)


def _read(waves: TextIO, path: Path, core: int | None) -> Iterator[RetiredInstruction]:
    with waves:
        wanted = _ports(waves)
        cores = sorted({port.core for uses in wanted.values() for port, _ in uses})
        if not cores:
            scopes = RETIRED_SCOPE.format(core="N")
            raise PlexusError(
                f"{path} has no GPSIMD core: of programs that run on some, whole waves have, and those of "
                f"--waves-scope gpsimd or {scopes}"
            )
        if core is not None and core not in cores:
            raise PlexusError(f"{path} has no core {core}: those in it are {', '.join(map(str, cores))}")
        try:
            yield from (row for row in _rows(waves, wanted) if core in (None, row.core))
        except ValueError as error:
            raise PlexusError(f"{path} is torn: {error}") from None


def retired_in(path: Path, core: int | None = None) -> Iterator[RetiredInstruction]:
    """Those of a core, or of all, in the VCD of a run, in the order of cycles. The instruction that ends a program is
    not among them: its core stops before it comes to the port. Errors: PlexusError if there is no such file or core."""
    if path.suffix != ".vcd":
        raise PlexusError(f"instructions are read from waves in a file that ends in .vcd, not from {path}")
    try:
        return _read(path.open(encoding="ascii", errors="replace"), path, core)
    except OSError as error:
        raise PlexusError(f"{path} cannot be read: {error.strerror}") from None
