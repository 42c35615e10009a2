"""A queue whose run decides: its instructions, what it reads, where it may leave some out, and what makes up for these.

What waits for an instruction waits for a count, so who leaves some out adds as many to the counts of its queue and of
its own ring, when all that they would have waited for is complete, as far as it is not left out itself. Waits behind
the block are then right without knowing what was left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from firmware.decisions.numbers import Condition, Number, Register, parts_of, value_of
from firmware.decisions.regions import Exit, Load, Region
from firmware.hazards import Hazards, Known
from firmware.program import Instruction, SemaphoreWait
from rtl.contract.isa import Opcode, Queue

__all__ = ["End", "Guard", "Items", "Read", "Step", "executed", "steps_of"]


@dataclass(frozen=True, slots=True)
class Items:
    """Instructions of the queue from `begin` to `end`."""

    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Read:
    """A register is read, behind `waits`."""

    register: Register
    waits: tuple[Instruction, ...]


@dataclass(frozen=True, slots=True)
class Guard:
    """Unless `condition` holds, what comes up to the End of `region` is left out, and `instead` executed."""

    condition: Condition
    region: Region
    instead: tuple[Instruction, ...]


@dataclass(frozen=True, slots=True)
class End:
    """What may be left out ends here."""

    region: Region


Step = Items | Read | Guard | End


class _Queue:
    """Of a kernel: one of its queues, which fills ring `own` if it has one."""

    def __init__(self, queue: Queue, own: int | None, hazards: Hazards):
        self.queue, self.own = int(queue), own
        self._hazards = hazards

    def _left(self, exit_: Exit, producer: int) -> int:
        return exit_.region.ends.get(producer, 0) - exit_.counts.get(producer, 0)

    def leaves(self, exit_: Exit) -> bool:
        """Whether it has anything to leave out."""
        return self._left(exit_, self.queue) > 0

    def begins(self, exit_: Exit) -> bool:
        """Whether it has anything between this exit and the next one of its block."""
        exits = exit_.region.exits
        at = next(n for n, one in enumerate(exits) if one is exit_)
        until = exits[at + 1].counts if at + 1 < len(exits) else exit_.region.ends
        return until.get(self.queue, 0) > exit_.counts.get(self.queue, 0)

    def idle(self, needs: Known, source: str) -> tuple[Instruction, ...]:
        """Instructions that wait, and count for nothing."""
        return tuple(self._nop(waits, self.queue, 0, source) for waits in _pairs(needs))

    def instead(self, exit_: Exit) -> tuple[Instruction, ...]:
        """What makes up for what is left out."""
        counts, ends, source = exit_.counts, exit_.region.ends, exit_.region.place
        hazards = self._hazards
        known = hazards.after(self.queue, counts[self.queue]) if counts.get(self.queue) else {}
        needs: Known = {}
        mine = [self.queue, *([self.own] if self.own is not None and self._left(exit_, self.own) else [])]
        for producer in mine:
            for other, count in hazards.after(producer, ends[producer]).items():
                if other != self.queue:
                    needs[other] = max(needs.get(other, 0), min(count, counts.get(other, 0)))
        waits = _pairs(hazards.unknown({p: n for p, n in needs.items() if n}, known))
        found = [self._nop(some, self.queue, 0, source) for some in waits[:-1]]
        last = waits[-1] if waits else []
        if len(mine) > 1:
            assert self.own is not None
            found.append(self._nop(last, self.own, self._left(exit_, self.own), source))
            last = []
        return (*found, self._nop(last, self.queue, self._left(exit_, self.queue), source))

    @staticmethod
    def _nop(waits: Sequence[SemaphoreWait], update: int, adds: int, source: str) -> Instruction:
        return Instruction(opcode=Opcode.NOP, update=update, adds=adds, waits=tuple(waits), source=source)


def _pairs(needs: Known) -> list[list[SemaphoreWait]]:
    """Waits for what is needed, two an instruction."""
    waits = [SemaphoreWait(producer, count) for producer, count in sorted(needs.items())]
    return [waits[n : n + 2] for n in range(0, len(waits), 2)]


def steps_of(
    queue: Queue,
    own: int | None,
    count: int,
    events: Sequence[Load | Exit | Region],
    hazards: Hazards,
    moves: Sequence[Number] = (),
) -> list[Step]:
    """Steps of a queue of `count` instructions; none if nothing of it depends on the run. `own`: the producer that is
    its ring. `moves`: numbers of the run in its instructions."""
    of = _Queue(queue, own, hazards)
    guards = [e for e in events if isinstance(e, Exit) and of.leaves(e)]
    if not guards and not moves:
        return []
    # Of exits between which it has nothing the last one will do: what holds there held before.
    needed = {id(e) for e in guards if of.begins(e)}
    regions = {id(e.region) for e in guards}
    wanted = {r.index for n in [*(e.condition.number for e in guards), *moves] for r in parts_of(n)}
    found: list[Step] = []
    at = 0

    def up_to(counts: Known) -> None:
        nonlocal at
        end = counts.get(int(queue), 0)
        if end > at:
            found.append(Items(at, end))
            at = end

    for event in events:
        if isinstance(event, Load) and event.register.index in wanted:
            up_to(event.counts)
            found.append(Read(event.register, of.idle(event.needs, event.register.place)))
        elif isinstance(event, Exit) and id(event) in needed:
            up_to(event.counts)
            found.append(Guard(event.condition, event.region, of.instead(event)))
        elif isinstance(event, Region) and id(event) in regions:
            up_to(event.ends)
            found.append(End(event))
    up_to({int(queue): count})
    return found


def _moved(instruction: Instruction, registers: Mapping[int, int]) -> Instruction:
    """The instruction with its places where they are in this run."""
    descriptor = instruction.descriptor
    if not instruction.moves or descriptor is None:
        return instruction
    for side, number in instruction.moves:
        place = getattr(descriptor, side)
        descriptor = replace(descriptor, **{side: replace(place, offset=place.offset + value_of(number, registers))})
    return replace(instruction, descriptor=descriptor, moves=())


def executed(
    steps: Sequence[Step], instructions: Sequence[Instruction], registers: Mapping[int, int]
) -> list[tuple[Instruction, int | None]]:
    """Instructions that a run with these registers executes, with their places; those that are in none of them None."""
    found: list[tuple[Instruction, int | None]] = []
    ends = {id(step.region): n for n, step in enumerate(steps) if isinstance(step, End)}
    n = 0
    while n < len(steps):
        step = steps[n]
        if isinstance(step, Items):
            found += [(_moved(instructions[place], registers), place) for place in range(step.begin, step.end)]
        elif isinstance(step, Read):
            found += [(one, None) for one in step.waits]
        elif isinstance(step, Guard) and not step.condition.holds(registers):
            found += [(one, None) for one in step.instead]
            n = ends[id(step.region)]
        n += 1
    return found
