"""Netlist as text (RTLIL) through the Yosys that Amaranth finds.

It is asked for its version once in a process. Amaranth's own conversion to Verilog asks each time: as long again as
a small netlist takes.
"""

import os
import re
from collections.abc import Iterable
from functools import cache
from typing import Any

from rtl.base.amaranth_internals import find_yosys

__all__ = ["run_yosys", "to_verilog"]

_OURS = ("generator", "top", "src", "amaranth.hierarchy", "amaranth.decoding")
"""Attributes of Amaranth's that no tool behind it reads."""


@cache
def _yosys(*place: str | None) -> Any:
    """Found once for each `place` that the environment names."""
    return find_yosys(lambda version: version >= (0, 40))


def run_yosys(netlist: str, commands: Iterable[str]) -> str:
    """What Yosys prints when it has read a netlist and runs these commands. Errors: Amaranth's YosysError."""
    yosys = _yosys(*(os.environ.get(name) for name in ("AMARANTH_USE_YOSYS", "YOSYS", "PATH")))
    script = "\n".join([f"read_rtlil <<rtlil\n{netlist}\nrtlil", *commands])
    # Yosys warns of processes that it cannot always write as Verilog; Amaranth makes only such as it can.
    return yosys.run(["-q", "-"], script, ignore_warnings=True)


_SIGNED = re.compile(r"^(  wire .*) signed (\S+)$", re.M)
"""Declarations of signed wires. Cells say themselves whether they are signed, and Yosys writes $signed() where they
are; but an unsigned comparison of two such wires it writes as `a < b`, which Verilog compares with their signs."""


def to_verilog(netlist: str, *, places: bool = False) -> str:
    """Verilog of all modules of a netlist: what Amaranth's verilog.convert makes of it, but without signed wires.
    `places`: with attributes `src`."""
    removed = " ".join(f"-remove {name}" for name in _OURS if not places or name != "src")
    attributes = (f"attrmap {removed}", f"attrmap -modattr {removed}")
    return run_yosys(
        _SIGNED.sub(r"\1 \2", netlist), ("proc -nomux -norom", "memory_collect", *attributes, "write_verilog -norename")
    )
