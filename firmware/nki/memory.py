"""Room in SBUF and PSUM for arrays that live as long as their handles."""

from bisect import insort
from dataclasses import dataclass, field
from weakref import finalize

from firmware.views import MemoryFullError, Tile

__all__ = ["Arena", "Block", "Blocks"]

_ALIGN_BYTES = 64
_LISTED = 6  # live arrays in a sentence


@dataclass(eq=False, slots=True)
class Block:
    """`bytes` from `offset` on of every partition; `about` names it in errors."""

    arena: "Arena"
    offset: int
    bytes: int
    about: str
    written: set[int] = field(default_factory=set)  # sums of PSUM: a product goes on top of what is there
    __weakref__: object = field(init=False, repr=False)


@dataclass(eq=False, slots=True)
class Arena:
    """A tile that holds all arrays of a memory. `kind`: its name in errors; `align`: at most, in bytes; `rest`: who has
    the bytes of a partition that are not in the tile."""

    kind: str
    tile: Tile
    size: int
    align: int
    rest: str = ""
    free: list[tuple[int, int]] = field(default_factory=list)  # [first, end), ascending
    live: dict[int, tuple[int, str]] = field(default_factory=dict)  # offset: bytes, about
    next: int = 0
    peak: int = 0

    def __post_init__(self) -> None:
        self.free.append((0, self.size))

    def take(self, size: int, about: str) -> Block:
        """Room for `size` bytes, behind what was taken last if possible. MemoryFullError lists what lives."""
        step = min(self.align, max(_ALIGN_BYTES, 1 << (size - 1).bit_length()))
        wanted = -(-size // _ALIGN_BYTES) * _ALIGN_BYTES
        after = [(max(first, self.next), end) for first, end in self.free]
        fits = [(-(-first // step) * step, end) for first, end in (*after, *self.free)]
        first = next((first for first, end in fits if end - first >= wanted), None)
        if first is None:
            raise MemoryFullError(self._full(size, about))
        index = next(i for i, (f, e) in enumerate(self.free) if f <= first < e)
        low, high = self.free.pop(index)
        for part in ((low, first), (first + wanted, high)):
            if part[0] < part[1]:
                insort(self.free, part)
        self.next = first + wanted
        self.live[first] = (wanted, about)
        self.peak = max(self.peak, sum(n for n, _ in self.live.values()))
        block = Block(self, first, wanted, about)
        finalize(block, self._give, first).atexit = False
        return block

    def _give(self, first: int) -> None:
        size, _ = self.live.pop(first)
        end = first + size
        merged = []
        for low, high in self.free:
            if high == first:
                first = low
            elif low == end:
                end = high
            else:
                merged.append((low, high))
        insort(merged, (first, end))
        self.free = merged

    def _full(self, size: int, about: str) -> str:
        by_about: dict[str, list[int]] = {}
        for taken, name in self.live.values():
            by_about.setdefault(name, []).append(taken)
        rows = sorted(by_about.items(), key=lambda row: -sum(row[1]))
        lives = ", ".join(f"{len(n)} x {n[0]} bytes of {name}" for name, n in rows[:_LISTED]) or "nothing"
        more = f", and {len(rows) - _LISTED} more" if len(rows) > _LISTED else ""
        used = sum(n for n, _ in self.live.values())
        rest = f" ({self.rest})" if self.rest else ""
        return (
            f"{self.kind} is full: {about} needs {size} bytes of each partition, {self.size - used} of {self.size} are "
            f"free{rest}, {max((e - f for f, e in self.free), default=0)} in a piece; alive are {lives}{more}"
        )


@dataclass(eq=False, slots=True)
class Blocks:
    """Room for each block of an array with axes before that of partitions, when somebody first asks for it, until
    nobody asks any more: `lifetimes` of (number, block), the last call that does. Found by a run that sends nothing."""

    arena: Arena
    number: int
    elements: int
    bytes: int
    about: str
    lifetimes: dict[tuple[int, int], int]
    watching: bool
    found: dict[int, Block] = field(default_factory=dict)
    __weakref__: object = field(init=False, repr=False)

    def at(self, index: int, call: int) -> Block:
        """The block, asked for by a call."""
        if self.watching:
            self.lifetimes[self.number, index] = call
        if index not in self.found:
            self.found[index] = self.arena.take(self.bytes, self.about)
        return self.found[index]

    def give(self, call: int) -> None:
        """Free the blocks that no later call asks for."""
        for index in [i for i in self.found if self.lifetimes.get((self.number, i), -1) < call]:
            del self.found[index]
