"""What Plexus knows of Amaranth beyond its documentation, as Amaranth VERSION has it. No other file knows any of it.

`INTERNALS` says of each piece what it is for and what is lost without it; `changes` compares them with the Amaranth
that is installed. After an upgrade read Amaranth's new text of what `changes` names, adapt what uses it, and set
VERSION and the digest.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from operator import attrgetter
from typing import Any

import amaranth
from amaranth._toolchain.yosys import YosysError, find_yosys
from amaranth.hdl import Elaboratable
from amaranth.hdl._ast import ArrayProxy, Assign, Part, Slice, Switch, SwitchValue
from amaranth.hdl._ir import DriverConflict
from amaranth.hdl._nir import (
    AsyncReadPort,
    CombinationalCycle,
    FlipFlop,
    Matches,
    ModuleNetFlow,
    Net,
    Netlist,
    Operator,
    SyncReadPort,
)
from amaranth.hdl._nir import Instance as InstanceCell
from amaranth.hdl._nir import Part as PartCell
from amaranth.hdl._nir import Value as NetValue

__all__ = [
    "INTERNALS",
    "VERSION",
    "ArrayProxy",
    "Assign",
    "AsyncReadPort",
    "CombinationalCycle",
    "DriverConflict",
    "FlipFlop",
    "InstanceCell",
    "Internal",
    "Matches",
    "ModuleNetFlow",
    "Net",
    "NetValue",
    "Netlist",
    "Operator",
    "Part",
    "PartCell",
    "Slice",
    "Switch",
    "SwitchValue",
    "SyncReadPort",
    "YosysError",
    "changes",
    "counts_as_used",
    "find_yosys",
    "original",
    "replaced",
]

VERSION = "0.5.10"
"""The Amaranth that all this was written for."""


@dataclass(frozen=True, slots=True)
class Internal:
    """`place`: module and name in it. `digest`: of the text of what is replaced or relied on word for word."""

    place: str
    use: str
    without: str
    digest: str = ""

    def found(self) -> Any:
        """The thing itself. Errors: ImportError, AttributeError if this Amaranth lacks it."""
        module, name = self.place.split(":")
        return attrgetter(name)(import_module(module))

    @property
    def text_digest(self) -> str:
        """`digest` of the Amaranth that is installed. Errors: TypeError if it is not written in Python."""
        return sha256(inspect.getsource(self.found()).encode()).hexdigest()[:12]


_SLOW = "the structural core at `full` takes three times as long to convert"
_LOOPS = "a core takes a fifth longer to convert"
_LARGE = "the structural core at `full` takes 1.2 GiB more to convert"

INTERNALS = (
    Internal(
        "amaranth._unused:MustUse.__del__",
        "reads `_MustUse__used`, which counts_as_used sets",
        "a component that only lends its signature, or is handed to another one, warns that it is unused",
        "bd448722df72",
    ),
    Internal(
        "amaranth.hdl._nir:Netlist.check_comb_cycles",
        "replaced by a search with one node for a cell whose output bits all depend on all inputs",
        _SLOW,
        "3896dd1aabb3",
    ),
    Internal(
        "amaranth.hdl._nir:Value.__new__", "replaced by one that does not look at each net", _SLOW, "d07798c2470e"
    ),
    Internal(
        "amaranth.hdl._nir:Netlist.alloc_late_value", "replaced: one note a signal, not a net", _LARGE, "2768131a0e44"
    ),
    Internal("amaranth.hdl._ir:NetlistEmitter.emit_signal", "replaced: no notes of its own", _LARGE, "f16638e99b91"),
    Internal("amaranth.hdl._nir:Net.from_cell", "replaced: one assertion, of the bit", _LOOPS, "3139246b03b2"),
    Internal("amaranth.hdl._nir:Netlist.resolve_value", "replaced by one loop over integers", _LOOPS, "a78884eb2daa"),
    Internal("amaranth.back.rtlil:ModuleEmitter.sigspec", "replaced by one loop over integers", _LOOPS, "bf378027a97b"),
    Internal("amaranth.hdl._ir:_compute_net_flows", "replaced by the same walk over lists", _LOOPS, "4471115370b8"),
    Internal(
        "amaranth.back.rtlil:ModuleEmitter.emit_signal_fields",
        "replaced by nothing where no wave viewer reads: no wires for the fields of structures",
        "25,000 wires in a tile of 64 PEs, for which Verilator makes room in every tile",
        "f33c0df2e5f9",
    ),
    *(
        Internal(f"amaranth.hdl._nir:{name}", "told apart by the search for loops and the walk of nets", _SLOW)
        for name in (
            "AsyncReadPort",
            "FlipFlop",
            "Instance",
            "Matches",
            "ModuleNetFlow",
            "Net",
            "Operator",
            "Part",
            "SyncReadPort",
        )
    ),
    *(
        Internal(
            f"amaranth.hdl._ast:{name}",
            "told apart by the law that no port narrows another in silence",
            "that law cannot read the assignments of an elaborated design",
        )
        for name in ("ArrayProxy", "Assign", "Part", "Slice", "Switch", "SwitchValue")
    ),
    *(
        Internal(f"amaranth.hdl._{place}", "expected by tests of the search for loops", "those tests cannot name it")
        for place in ("nir:CombinationalCycle", "ir:DriverConflict")
    ),
    *(
        Internal(
            f"amaranth._toolchain.yosys:{name}",
            "Yosys as Amaranth finds it, asked for its version once in a process",
            "each conversion asks anew: as long again as a small netlist takes",
        )
        for name in ("find_yosys", "YosysError")
    ),
)

_ORIGINALS = {each.place.split(":")[1]: each.found() for each in INTERNALS if each.use.startswith("replaced")}


def counts_as_used(component: Elaboratable) -> None:
    """Say that a component need not be elaborated: no warning when it is dropped."""
    component._MustUse__used = True


def original(name: str) -> Callable[..., Any]:
    """Amaranth's own function, as "Netlist.check_comb_cycles"; one of those that can be replaced."""
    return _ORIGINALS[name]


@contextmanager
def replaced(functions: Mapping[str, Callable[..., Any]]) -> Iterator[None]:
    """In the body these functions of Amaranth, by the names that `original` takes, mean others."""
    places = [each.place for name in functions for each in INTERNALS if each.place.endswith(f":{name}")]

    def put(chosen: Mapping[str, Callable[..., Any]]) -> None:
        for place in places:
            module, name = place.split(":")
            owner, _, attribute = name.rpartition(".")
            setattr(
                attrgetter(owner)(import_module(module)) if owner else import_module(module), attribute, chosen[name]
            )

    put(functions)
    try:
        yield
    finally:
        put(_ORIGINALS)


def changes() -> list[str]:
    """A sentence for each internal that the installed Amaranth has not, or has in other words."""
    found: list[str] = []
    for each in INTERNALS:
        try:
            each.found()
            same = not each.digest or each.text_digest == each.digest
        except (ImportError, AttributeError):
            found.append(f"Amaranth {amaranth.__version__} has no {each.place}; without it {each.without}")
            continue
        if not same:
            found.append(
                f"{each.place} of Amaranth {amaranth.__version__} reads otherwise than that of {VERSION}: {each.use}"
            )
    if amaranth.__version__ != VERSION:
        found.append(f"Amaranth is {amaranth.__version__}; its internals were last read at {VERSION}")
    return found
