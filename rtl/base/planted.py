"""A unit with the faults that are planted in it, driven by one more input."""

from collections.abc import Sequence

from amaranth.hdl import Const, Elaboratable, Fragment, Module, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from rtl.base.amaranth_internals import counts_as_used
from rtl.base.fault import UnknownFaultError, planting

__all__ = ["Planted"]


class _Elaborated(Elaboratable):
    """What has been elaborated already, as a submodule."""

    def __init__(self, fragment: Fragment):
        self._fragment = fragment

    def elaborate(self, platform: object) -> Fragment:
        return self._fragment


class Planted(wiring.Component):
    """`unit` with all its ports, and the input `faults`: bit i plants fault `names[i]`."""

    PORT = "faults"

    def __init__(self, unit: wiring.Component, names: Sequence[str]):
        self._unit = unit
        self.names = tuple(names)
        counts_as_used(self._unit)  # the whole is what must be used
        super().__init__({**dict(unit.signature.members), self.PORT: In(self.fault_bits())})

    def fault_bits(self) -> int:
        """Width of the input."""
        return len(self.names)

    def fault_chosen(self, name: str) -> Value:
        """Whether the input plants a fault."""
        return self.faults[self.names.index(name)]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        with planting() as faults:
            m.submodules.unit = _Elaborated(Fragment.get(self._unit, platform))
        self.names = self.names or faults.names
        for name in self.names:
            if name not in faults.signals:
                raise UnknownFaultError(f"{type(self._unit).__name__} has no fault {name!r}; it has: {faults.names}")
        m.d.comb += [faults.signals[name].eq(self.fault_chosen(name)) for name in self.names]
        inner = {path: value for path, _, value in self._unit.signature.flatten(self._unit)}
        for path, member, port in self.signature.flatten(self):
            if path == (self.PORT,):
                continue
            ours, theirs = Value.cast(port), Value.cast(inner[path])
            if isinstance(theirs if member.flow == In else ours, Const):
                continue
            m.d.comb += theirs.eq(ours) if member.flow == In else ours.eq(theirs)
        return m
