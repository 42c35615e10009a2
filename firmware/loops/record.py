"""Statements of a loop's body, said once and executed in each of its turns."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol

from firmware.decisions.numbers import Condition, Number
from firmware.decisions.regions import Regions
from firmware.engines.base import caller, said_at
from firmware.errors import KernelError
from firmware.loops.lazy import Index, Lazy, Result, now
from firmware.loops.turns import Turns

__all__ = ["Recorder"]

EVALUATION = (ArithmeticError, AttributeError, LookupError, TypeError)
"""What Python raises where an argument makes no sense in this turn."""


class _Step(Protocol):
    def run(self, recorder: "Recorder") -> None: ...


@dataclass(eq=False, slots=True)
class _Call:
    """A statement at `place`: `method` of these arguments; `result` gets what it returns."""

    method: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    place: str
    result: Result

    def run(self, recorder: "Recorder") -> None:
        with recorder.told(self.place):
            args, kwargs = recorder.evaluated((self.args, self.kwargs))
            with said_at(self.place):
                self.result._set(self.method(*args, **kwargs))


@dataclass(eq=False, slots=True)
class _Mark:
    """Something to do that is no statement."""

    do: Callable[[], None]

    def run(self, recorder: "Recorder") -> None:
        self.do()


@dataclass(eq=False, slots=True)
class _Block:
    """Steps that are executed if `condition` holds."""

    place: str
    condition: Any = True
    steps: list[_Step] = field(default_factory=list[_Step])

    def run(self, recorder: "Recorder") -> None:
        with recorder.told(self.place):
            condition = recorder.evaluated(self.condition)
            condition = condition != 0 if isinstance(condition, Number) else condition
            if not isinstance(condition, Condition) and not condition:
                return
        if not isinstance(condition, Condition):
            self.go(recorder)
            return
        with recorder.regions.block(self.place):
            recorder.regions.leave_unless(condition)
            self.go(recorder)

    def go(self, recorder: "Recorder") -> None:
        """Execute the steps."""
        for step in self.steps:
            step.run(recorder)


@dataclass(eq=False, slots=True)
class _Loop(_Block):
    """Steps that are executed `count` times; if only a run knows that, at most as often as it may be."""

    count: int | Number = 0
    index: Index = field(default_factory=lambda: Index(""))

    def run(self, recorder: "Recorder") -> None:
        decides = isinstance(self.count, Number)
        with recorder.regions.block(self.place) if decides else nullcontext():
            self._turns(recorder)

    def _turns(self, recorder: "Recorder") -> None:
        recorder.turns.begin()
        count = self.count
        for turn in range(count.high if isinstance(count, Number) else count):
            self.index.value = turn
            recorder.turns.turn()
            if isinstance(count, Number):
                recorder.regions.leave_unless(count > turn)
            recorder.around.append(f"turn {turn} of the loop at {self.place}")
            try:
                self.go(recorder)
            finally:
                recorder.around.pop()
                self.index.value = None
        recorder.turns.end()


class Recorder:
    """Of a kernel whose turns are noted in `turns`, and what its runs decide in `regions`. Errors: KernelError, one
    sentence."""

    def __init__(self, turns: Turns, regions: Regions):
        self.turns = turns
        self.regions = regions
        self.used = False
        """Arguments may be lazy."""
        self.around: list[str] = []
        """Turns that are being executed, the outermost first."""
        self._open: list[_Block] = []
        self._paused = False

    @property
    def recording(self) -> bool:
        """Whether statements are for later."""
        return bool(self._open) and not self._paused

    @property
    def open(self) -> bool:
        """Whether the body of a block is being said."""
        return bool(self._open)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """What a statement that is executed at once does in turn is executed too."""
        before, self._paused = self._paused, True
        try:
            yield
        finally:
            self._paused = before

    def record(self, method: Callable[..., Any], name: str, args: Any, kwargs: Any) -> Result:
        """A statement for later; what it will return."""
        place = caller()
        result = Result(f"k.{name}", place)
        self._open[-1].steps.append(_Call(method, _kept(args), _kept(kwargs), place, result))
        return result

    def marks(self) -> Callable[[Callable[[], None]], None]:
        """How to note something that belongs here: now, or whenever the block is executed."""
        if not self.recording:
            return lambda do: do()
        steps = self._open[-1].steps
        return lambda do: steps.append(_Mark(do))

    @contextmanager
    def block(self, condition: Any, place: str) -> Iterator[None]:
        """Statements that are executed if `condition` holds."""
        with self._said(_Block(place, condition)):
            yield

    @contextmanager
    def loop(self, count: int | Number, place: str) -> Iterator[Index]:
        """Statements that are executed so many times."""
        index = Index(place)
        with self._said(_Loop(place, count=count, index=index)):
            yield index

    @contextmanager
    def _said(self, block: _Block) -> Iterator[None]:
        self.used = True
        self._open.append(block)
        try:
            yield
        finally:
            self._open.pop()
        if self._open:
            self._open[-1].steps.append(block)
        else:
            block.run(self)

    @contextmanager
    def told(self, place: str) -> Iterator[None]:
        """Errors in here name the statement and its turns."""
        try:
            yield
        except KernelError as error:
            if not self.around:
                raise
            raise type(error)(f"{error} ({place} in {', '.join(reversed(self.around))})") from error

    @staticmethod
    def evaluated(value: Any) -> Any:
        """What it is in this turn."""
        try:
            return now(value)
        except EVALUATION as error:
            raise KernelError(f"an argument has no value: {error}") from error


def _kept(value: Any) -> Any:
    """The same, with lists of its own: the kernel may go on changing its."""
    if isinstance(value, Lazy):
        return value
    if type(value) in (tuple, list):
        return type(value)(map(_kept, value))
    if type(value) is dict:
        return {key: _kept(one) for key, one in value.items()}
    return value
