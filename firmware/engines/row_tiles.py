"""Row tiles of the array: what each row group holds, and which matmuls and transposes may write a bank of PSUM."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from firmware.builder import Builder
from firmware.engines.base import need
from firmware.hazards import Access, Known
from firmware.views import KernelError, TileView
from rtl.contract.isa import Queue

__all__ = ["RowTile", "RowTiles"]

_BYTES = 4  # of a sum
OperandT = TypeVar("OperandT")


@dataclass(frozen=True, slots=True)
class RowTile:
    """Tile `place` of `tiles`: row groups `first` to `last`, at which its sums leave. `code`: in instructions."""

    tiles: int
    place: int
    first: int
    last: int

    @property
    def code(self) -> int:
        return self.tiles.bit_length() - 1

    @property
    def groups(self) -> range:
        return range(self.first, self.last + 1)

    def __str__(self) -> str:
        return "the whole array" if self.tiles == 1 else f"tile {self.place} of {self.tiles}"


@dataclass(frozen=True, slots=True)
class _Writer:
    """The last matmul or transpose (`what`) of a tile that wrote a bank: its item in the tensor queue."""

    what: str

    tile: RowTile
    count: int
    name: str


class RowTiles(Generic[OperandT]):
    """Of one kernel: `OperandT` is what the tensor engine keeps of a stationary operand."""

    def __init__(self, k: Builder):
        self._k = k
        self._held: list[tuple[RowTile, OperandT] | None] = [None] * k.cfg.tensor.groups
        self._waits: list[str] = [""] * k.cfg.tensor.groups  # name of the operand that a load left for a matmul
        self._writers: dict[int, dict[int, _Writer]] = {}  # bank, exit: the row group for sums, then for transposes
        self._columns = [0] * k.cfg.tensor.groups

    def of(self, view: TileView, what: str, tiles: int) -> RowTile:
        """The tile that an operand lies in, where the rows are `tiles` tiles."""
        tensor = self._k.cfg.tensor
        need(tiles in (1, 2, 4), f"the rows of the array are 1, 2 or 4 tiles, not {tiles}")
        need(
            tiles <= tensor.groups,
            f"{tiles} tiles need {tiles} row groups; {self._k.cfg.name} has {tensor.groups} "
            f"({tensor.rows} rows, at least 8 in a group)",
        )
        size = tensor.rows // tiles
        last = view.start + view.partitions - 1
        need(
            view.start // size == last // size,
            f"{what} {view.tile.name} is on partitions {view.start} to {last}; with {tiles} tiles of {size} rows it "
            f"must lie in one of them",
        )
        each = tensor.groups // tiles
        place = view.start // size
        return RowTile(tiles, place, place * each, (place + 1) * each - 1)

    def loads(self, tile: RowTile, operand: OperandT) -> None:
        """`operand` is loaded into a tile."""
        held = (tile, operand)
        for g in tile.groups:
            self._held[g] = held

    def keeps(self) -> tuple[Any, ...]:
        """What each row group holds."""
        return (tuple(self._held), tuple(self._waits))

    def forgets(self, before: Sequence[tuple[Any, ...]]) -> None:
        """What they hold may be this or what they held before: of several operands nobody knows which. One that waits
        for a matmul in any case may do so."""
        for held, waits in before:
            self._waits = [mine or other for mine, other in zip(self._waits, waits, strict=True)]
            self._held = [mine if mine == other else None for mine, other in zip(self._held, held, strict=True)]

    def waits(self, tile: RowTile, name: str) -> None:
        """A LOAD_STATIONARY of `name` is sent to a tile."""
        for g in tile.groups:
            self._waits[g] = name

    def free(self, tile: RowTile, name: str) -> None:
        """KernelError if a transpose of `name` on a tile would overwrite weights that no matmul has taken."""
        waiting = next((self._waits[g] for g in tile.groups if self._waits[g]), "")
        need(
            not waiting,
            f"a transpose of {name} on {tile} would overwrite the stationary operand {waiting}, which no matmul has "
            f"used yet; it belongs before the load or behind the matmul",
        )

    def held(self, tile: RowTile, name: str) -> OperandT:
        """What was loaded into this tile last."""
        found = self._held[tile.last]
        whole = all(self._held[g] is found for g in tile.groups) if found else False
        if found is None or not whole:
            where = "" if tile.tiles == 1 else f" into {tile}"
            raise KernelError(f"a matmul of {name} needs a stationary operand loaded{where} before it")
        need(
            found[0] == tile,
            f"a matmul of {name} on {tile} finds the stationary operand that was loaded into {found[0]}",
        )
        return found[1]

    def sent(self, tile: RowTile, psum: TileView) -> None:
        """The kernel's last instruction is a matmul of a tile; tells it how many columns the busiest row group has."""
        before = max(self._columns)
        for g in tile.groups:
            self._columns[g] += psum.elements
            self._waits[g] = ""
        self._k.columns_sent(max(self._columns) - before)
        self._writes(tile, psum, turns=False)

    def turned(self, tile: RowTile, psum: TileView) -> None:
        """The kernel's last instruction is a transpose of a tile."""
        self._writes(tile, psum, turns=True)

    def _exit(self, tile: RowTile, turns: bool) -> int:
        """Where rows of a tile leave the array."""
        return tile.last + (self._k.cfg.tensor.groups if turns else 0)

    def _writes(self, tile: RowTile, psum: TileView, turns: bool) -> None:
        what = "transpose" if turns else "matmul"
        writer = _Writer(what, tile, self._k.items(Queue.TENSOR), psum.tile.name)
        for bank in self._banks(psum):
            self._writers.setdefault(bank, {})[self._exit(tile, turns)] = writer

    def _banks(self, psum: TileView) -> range:
        """Banks from that of the first element to that of the last."""
        size = self._k.cfg.psum.bank_bytes
        end = psum.offset + _BYTES * sum(step * (count - 1) for step, count in psum.dims)
        return range(psum.offset // size, end // size + 1)

    def needs(self, tile: RowTile, psum: TileView, accesses: tuple[Access, ...], turns: bool = False) -> Known:
        """What must be complete before a matmul, or a transpose, of a tile; others before it included.

        Rows of different exits leave in no order, so a bank belongs to one until what it writes is complete.
        Tiles that could run together are told to take different banks.
        """
        k = self._k
        queue = int(Queue.TENSOR)
        needs = k.needs(Queue.TENSOR, accesses)
        for bank in self._banks(psum):
            for exit_, other in self._writers.get(bank, {}).items():
                if exit_ == self._exit(tile, turns) or k.follows(Queue.TENSOR, needs, queue, other.count):
                    continue
                need(
                    bool(set(other.tile.groups) & set(tile.groups)),
                    f"a {'transpose' if turns else 'matmul'} on {tile} writes {psum.tile.name} in PSUM bank {bank}, "
                    f"where {'one' if (other.what == 'transpose') == turns else 'a ' + other.what} on {other.tile} may "
                    f"still be writing {other.name}; tiles that run together write different banks",
                )
                needs[queue] = max(needs.get(queue, 0), other.count)
        return needs
