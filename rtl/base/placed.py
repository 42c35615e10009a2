"""Describe once, place many times: a component that becomes a Verilog module of its own.

Amaranth elaborates every submodule anew (72 ms for a PE), so what is repeated (PE tiles, lanes) is
converted once and placed by Instance. `Placed` looks like the component it stands for; the emitter
collects what was placed. Amaranth's own simulator cannot look inside an Instance and reads its
outputs as 0: test such designs in Verilator.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

from amaranth.hdl import Cat, ClockSignal, Const, Fragment, Instance, Module, ResetSignal, Shape, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.amaranth_internals import counts_as_used
from rtl.base.fault import current_faults, fault, planting
from rtl.base.planted import Planted

__all__ = ["Collected", "Placed", "Repeated", "Repetition", "collecting", "faults_in", "needs_source"]


@dataclass(frozen=True, slots=True)
class Repetition:
    """Lanes that all do the same: `factory` makes one, ports in `shared` are common to all `count` of them.

    `domains`: clock domains of the lane that are its clock, let through by an enable. `form`, for a simulator: "loop"
    in Verilog, "cpp" in C++, or "either", which is C++ in a model that runs long.
    """

    factory: Callable[[], wiring.Component]
    count: int
    shared: frozenset[str]
    domains: tuple[str, ...]
    form: str = "loop"


class Collected:
    """What a conversion has met: components to convert as modules, and source files to add."""

    def __init__(self) -> None:
        self.modules: dict[str, Callable[[], wiring.Component]] = {}
        self.lanes: dict[str, Repetition] = {}
        self.sources: set[str] = set()
        self.hier_blocks: set[str] = set()


_collected: ContextVar[Collected | None] = ContextVar("collected", default=None)


@contextmanager
def collecting() -> Iterator[Collected]:
    """Collect what is placed while the body converts a design."""
    collected = Collected()
    token = _collected.set(collected)
    try:
        yield collected
    finally:
        _collected.reset(token)


def needs_source(*names: str) -> None:
    """Say that the design being converted needs these files of rtl/cells (.sv, .cpp, .h)."""
    collected = _collected.get()
    if collected is not None:
        collected.sources.update(names)


def faults_in(make: Callable[[], wiring.Component]) -> tuple[str, ...]:
    """Names of all faults that a component can have, sorted."""
    with collecting(), planting() as faults:
        Fragment.get(make(), None)
    return faults.names


def _faults_of_part(module: str, factory: Callable[[], wiring.Component]) -> tuple[str, ...]:
    """Those of a module that is converted apart, in a design that has faults: searched once; else none."""
    faults = current_faults()
    if faults is None:
        return ()
    if module not in faults.parts:
        faults.parts[module] = faults_in(factory)
    return faults.parts[module]


class Placed(wiring.Component):
    """The module `name`, made by `factory`, placed by Instance. Same ports as the component.

    Two placements of one name must mean the same hardware: the name carries the parameters that
    matter. `hier_block` makes it a unit of compilation of its own in Verilator. `clocked` is False
    for combinational modules, which have no clk and rst. `faults`: its faults can be planted, all or those of the
    names; each is an input bit of the module, and the product has none.
    """

    def __init__(
        self,
        name: str,
        factory: Callable[[], wiring.Component],
        *,
        clocked: bool = True,
        hier_block: bool = False,
        faults: bool | Sequence[str] = False,
    ):
        self.module_name = name
        self.factory = factory
        self.hier_block = hier_block
        self.clocked = clocked
        self.faults = faults
        self._prototype = factory()
        super().__init__(self._prototype.signature)
        counts_as_used(self._prototype)  # it only lends its signature, and so do parts that it has already
        for part in vars(self._prototype).values():
            if isinstance(part, wiring.Component):
                counts_as_used(part)

    def elaborate(self, platform: object) -> Module:
        if isinstance(self.faults, bool):
            names = _faults_of_part(self.module_name, self.factory) if self.faults else ()
        else:  # named, so that none need be searched for in a large part
            names = tuple(self.faults) if current_faults() is not None else ()
        collected = _collected.get()
        if collected is not None:
            factory = (lambda: Planted(self.factory(), names)) if names else self.factory
            collected.modules.setdefault(self.module_name, factory)
            if self.hier_block:
                collected.hier_blocks.add(self.module_name)
        ports: dict[str, object] = {"i_faults": Cat(fault(name) for name in names)} if names else {}
        if self.clocked:
            ports["i_clk"] = ClockSignal()
            ports["i_rst"] = ResetSignal()
        for path, member, value in self.signature.flatten(self):
            port = "__".join(str(part) for part in path)
            value = Value.cast(value)
            if isinstance(value, Const):
                continue
            ports[("i_" if member.flow == In else "o_") + port] = value
        m = Module()
        m.submodules.instance = Instance(self.module_name, **ports)
        return m


class Repeated(wiring.Component):
    """The module `name`: `count` lanes like the one that `factory` makes. Ports: those of a lane.

    A port in `shared` goes to all lanes; of every other one lane i has the bits from i times its width on. Each port is
    a single signal. `domains` are clock domains of the lane, each with a port `enable_{domain}`: they run on the clock
    of the whole, in cycles with it. `clocked` is False for combinational lanes, which have no clk and rst. `form` is
    that of Repetition. A lane's outputs may depend on registers and inputs; placed components cannot be inside it. Its
    faults can be planted, in all lanes at once, unless its form is "cpp".
    """

    def __init__(
        self,
        name: str,
        factory: Callable[[], wiring.Component],
        count: int,
        *,
        shared: tuple[str, ...],
        domains: tuple[str, ...] = (),
        clocked: bool = True,
        form: str = "loop",
    ):
        self.module_name = name
        self.clocked = clocked
        self.repetition = Repetition(factory, count, frozenset(shared), domains, form)
        lane = factory()
        counts_as_used(lane)  # it only lends its signature
        ports: dict[str, wiring.Member] = {f"enable_{domain}": In(1) for domain in domains}
        for port, member in lane.signature.members.items():
            if member.is_signature or member.dimensions:
                raise ValueError(f"port {port} of a lane of {name} is no single signal, and all ports of a lane are")
            flow = In if member.flow == In else Out
            width = Shape.cast(member.shape).width
            ports[port] = member if port in shared else flow(width * count)
        super().__init__(ports)

    def elaborate(self, platform: object) -> Module:
        lane = self.repetition
        names = () if lane.form == "cpp" else _faults_of_part(self.module_name, lane.factory)
        if names:
            make = self.repetition.factory
            lane = replace(lane, factory=lambda: Planted(make(), names), shared=lane.shared | {"faults"})
        collected = _collected.get()
        if collected is not None:
            collected.lanes.setdefault(self.module_name, lane)
        ports: dict[str, object] = {"i_clk": ClockSignal(), "i_rst": ResetSignal()} if self.clocked else {}
        if names:
            ports["i_faults"] = Cat(fault(name) for name in names)
        for (port,), member, value in self.signature.flatten(self):
            ports[("i_" if member.flow == In else "o_") + str(port)] = Value.cast(value)
        m = Module()
        m.submodules.instance = Instance(self.module_name, **ports)
        return m
