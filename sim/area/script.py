"""What Yosys and ABC are told to make of one unit: a netlist of the ten cells, made for few levels."""

from collections.abc import Sequence
from pathlib import Path

from rtl.emit.verilog import CELLS
from sim.area.cells import LIBERTY, genlib
from sim.area.modules import MARK, Module
from sim.area.units import Unit

__all__ = ["RESULT", "SCRIPT", "write_unit"]

RESULT = "mapped.json"
_ABC = ("strash", "if -g", "dch -f -C 10", "map", "topo")
_ABC_DEEP = ("strash", "&get -n", "&st", *("&if -g -K 6", "&dch") * 2, "&put", "dch", "map", "topo")
"""Five times as long, for a sixth fewer levels."""
_PLAIN = "-nodffe -nosdff"  # an enable is a multiplexer, a reset a gate: one kind of register
SCRIPT: tuple[str, ...] = (
    "proc",
    "flatten",
    "opt_expr",
    "opt_clean",
    f"opt {_PLAIN}",
    "wreduce",
    "peepopt",
    "opt_clean",
    "alumacc",
    f"opt {_PLAIN}",
    "opt_mem",
    "memory_collect",
    f"memory_map t:$mem_v2 a:{MARK} %d",
    f"opt -undriven -fine {_PLAIN}",
    "techmap",
    f"opt -fast {_PLAIN}",
    "dfflegalize -cell $_DFF_P_ 01",
    "opt_clean",
    "abc -liberty cells.lib -script abc.script",
    "opt_clean -purge",
    f"write_json {RESULT}",
)


def _box(module: Module) -> str:
    """The ports of a unit that is placed inside another one."""
    lines = ["attribute \\blackbox 1", "attribute \\keep 1", f"module \\{module.name}"]
    lines += [f"  wire width {bits} {way} {n} \\{port}" for n, (port, (way, bits)) in enumerate(module.ports.items())]
    return "\n".join([*lines, "end", ""])


def write_unit(unit: Unit, folder: Path, *, deep: bool = False) -> Path:
    """The files of a run of Yosys in `folder`; returns its script. `deep`: ABC takes more time for fewer levels."""
    netlist = [module.text for module in unit.modules if not module.verilog]
    (folder / "unit.il").write_text("\n".join([*netlist, *map(_box, unit.boxes.values())]))
    (folder / "lanes.v").write_text("\n".join(module.text for module in unit.modules if module.verilog))
    (folder / "cells.lib").write_bytes(LIBERTY.read_bytes())
    (folder / "cells.genlib").write_text(genlib())
    (folder / "abc.script").write_text("\n".join(["read_genlib cells.genlib", *(_ABC_DEEP if deep else _ABC)]) + "\n")
    read: Sequence[str] = [
        *(f"read_verilog -sv -lib {CELLS / name}" for name in _sources(unit, boxes=True)),
        *(f"read_verilog -sv {CELLS / name}" for name in _sources(unit, boxes=False)),
        "read_rtlil unit.il",
        *(["read_verilog lanes.v"] if any(module.verilog for module in unit.modules) else []),
        f"hierarchy -top \\{unit.modules[0].name}",
    ]
    script = folder / "unit.ys"
    script.write_text("\n".join([*read, *SCRIPT]) + "\n")
    return script


def _sources(unit: Unit, *, boxes: bool) -> list[str]:
    """Files of rtl/cells whose cells the unit places: black boxes, or what becomes gates."""
    known = {"plexus_ram": "plexus_ram.sv", "plexus_lookup": "plexus_lookup.sv", "plexus_delay": "plexus_delay.v"}
    known["plexus_clock_gate"] = "plexus_clock_gate.sv"
    chosen = known if boxes else {"plexus_xor_map": "plexus_xor_map.sv"}
    return [file for cell, file in chosen.items() if any(f"  cell \\{cell} " in m.text for m in unit.modules)]
