"""One mutant: a line of Yosys's `mutate -list`, and what of it an engineer wants to read."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass

__all__ = ["Mutant", "parse"]

_CONTROL = ("CLK", "Q", "RD_CLK", "WR_CLK")
"""Ports of a register or a memory that stay whole: a clock behind a gate comes too late, an output would lose its
initial value; what is wrong with either is wrong with D in the cycle before."""
_CLOCKS = ("clk", "gated")
"""Ports of cells in rtl/cells that carry clocks."""
_CELL = re.compile(r"^  cell (\S+) (\S+)$", re.M)


@dataclass(frozen=True, slots=True)
class Mutant:
    """`mode`: const0, const1, inv, cnot0 or cnot1 (inverted where the bit `control` of the port is 0 or 1). `cell`: its
    name in the flat netlist, `kind` its type. `wire`: the bit's name, `lines`: of Python, where known."""

    mode: str
    cell: str
    kind: str
    port: str
    bit: int
    control: int | None
    wire: str
    lines: tuple[str, ...]

    def __str__(self) -> str:
        control = "" if self.control is None else f" by bit {self.control}"
        parts = [f"{self.mode} {self.port}[{self.bit}]{control} of {self.kind} {self.cell}", self.wire, *self.lines]
        return ", ".join(part for part in parts if part)

    @property
    def is_of_a_clock(self) -> bool:
        """It changes what a simulator must see at the same time as the clock, or an initial value."""
        register = re.fullmatch(r"\$\w*(dff\w*|mem\w*)", self.kind) is not None
        return (register and self.port in _CONTROL) or (self.kind.startswith("plexus_") and self.port in _CLOCKS)

    def command(self, module: str, pin: str = "", value: int = 0) -> str:
        """For Yosys: the change to `module`, chosen by `value` at its 8-bit input `pin` if there is one."""
        chosen = f"-ctrl {pin} 8 {value} " if pin else ""
        control = "" if self.control is None else f" -ctrlbit {self.control}"
        place = f"-module {module} -cell {self.cell} -port {self.port} -portbit {self.bit}{control}"
        return f"mutate {chosen}-mode {self.mode} {place}"

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        return asdict(self)

    @staticmethod
    def of(values: Mapping[str, object]) -> "Mutant":
        """What `as_dict` gave."""
        return Mutant(**{**values, "lines": tuple(values["lines"])})  # type: ignore[arg-type]


def parse(listed: str, netlist: str) -> list[Mutant]:
    """The mutants that `mutate -list` wrote of a netlist in RTLIL; without those of clocks."""
    kinds = {name: kind.removeprefix("\\") for kind, name in _CELL.findall(netlist)}
    found = []
    for line in listed.splitlines():
        words = shlex.split(line.replace("\\", "\\\\"))[1:]
        options: dict[str, list[str]] = {}
        for key, value in zip(words[::2], words[1::2]):
            options.setdefault(key.removeprefix("-"), []).append(value)
        get = {key: values[0] for key, values in options.items()}
        cell = get["cell"]
        wire = f"{get['wire'].removeprefix(chr(92))}[{get['wirebit']}]" if "wire" in get else ""
        found.append(
            Mutant(
                mode=get["mode"],
                cell=cell,
                kind=kinds.get(cell) or kinds[f"\\{cell}"],
                port=get["port"],
                bit=int(get["portbit"]),
                control=int(get["ctrlbit"]) if "ctrlbit" in get else None,
                wire=wire,
                lines=tuple(sorted({part for text in options.get("src", ()) for part in text.split("|")})),
            )
        )
    return [mutant for mutant in found if not mutant.is_of_a_clock]
