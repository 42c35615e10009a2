"""Planted faults: what a unit can be made to do wrong, so that its bench shows that it would notice.

`fault("a FIFO takes an entry when full")` is 0 in the product, and synthesis removes what hangs on it. In a build for
benches it is a signal, one for each name in a whole design, which the emitter numbers and drives from the top
(rtl/emit/plant_top.py). A name says what goes wrong, and is asked for in one unit only.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from amaranth.hdl import Const, Signal, Value

__all__ = [
    "Faults",
    "UnknownFaultError",
    "current_faults",
    "fault",
    "fault_number",
    "planting",
    "plants_faults",
    "with_fault",
]

NUMBER_BITS = 8
"""Of the faults of a model in C++."""


class UnknownFaultError(ValueError):
    """No unit of a design asked for a fault of this name."""


class Faults:
    """Of a design under conversion: a signal for each fault that its units asked for.

    `parts`: names of the faults of modules that are converted apart, by module.
    """

    def __init__(self) -> None:
        self.signals: dict[str, Signal] = {}
        self.parts: dict[str, tuple[str, ...]] = {}

    def signal(self, name: str) -> Value:
        """1 while the fault is planted."""
        if name not in self.signals:
            self.signals[name] = Signal(name="fault_" + re.sub(r"\W+", "_", name))
        return self.signals[name]

    @property
    def names(self) -> tuple[str, ...]:
        """Of all faults, sorted."""
        return tuple(sorted(self.signals))


_asked: ContextVar[Callable[[str], Value] | None] = ContextVar("asked", default=None)
_faults: ContextVar[Faults | None] = ContextVar("faults", default=None)


def fault(name: str) -> Value:
    """1 while the fault of that name is planted; constant 0 in the product. For `elaborate`."""
    ask = _asked.get()
    return Const(0, 1) if ask is None else ask(name)


def fault_number(numbers: Mapping[str, int]) -> Value:
    """What a model in C++ calls the planted fault of `numbers`; 0 for none, and in the product."""
    if not plants_faults():
        return Const(0)
    number: Value = Const(0, NUMBER_BITS)
    for name, n in numbers.items():
        number |= fault(name).replicate(NUMBER_BITS) & n
    return number


def plants_faults() -> bool:
    """Whether the design being converted has faults; for those that need more than a gate."""
    return _asked.get() is not None


def current_faults() -> Faults | None:
    """Those of the body of `planting` that this is called in."""
    return _faults.get()


@contextmanager
def planting() -> Iterator[Faults]:
    """What the body elaborates has its faults, as signals that nothing drives yet."""
    faults = Faults()
    outer = _faults.get()
    if outer is not None:
        faults.parts = outer.parts
    tokens = _asked.set(faults.signal), _faults.set(faults)
    try:
        yield faults
    finally:
        _asked.reset(tokens[0])
        _faults.reset(tokens[1])


@contextmanager
def with_fault(name: str) -> Iterator[None]:
    """What the body elaborates does always what this fault says; the product if the name is empty.

    Errors: UnknownFaultError if no unit has the fault.
    """
    asked: set[str] = set()

    def ask(other: str) -> Value:
        asked.add(other)
        return Const(int(other == name), 1)

    token = _asked.set(ask if name else None)
    try:
        yield
    finally:
        _asked.reset(token)
    if name and name not in asked:
        raise UnknownFaultError(f"no unit has the fault {name!r}; there are: {'; '.join(sorted(asked)) or 'none'}")
