"""Row tiles of the array: what each row group holds, and which matmuls may write a bank of PSUM."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from firmware.engines.base import need
from firmware.hazards import Access, Known
from firmware.views import KernelError, TileView
from rtl.contract.isa import Queue

if TYPE_CHECKING:
    from firmware.kernel import Kernel

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
    """The last matmul of a tile that wrote a bank: its item in the tensor queue."""

    tile: RowTile
    count: int
    name: str


class RowTiles(Generic[OperandT]):
    """Of one kernel: `OperandT` is what the tensor engine keeps of a stationary operand."""

    def __init__(self, k: "Kernel"):
        self._k = k
        self._held: list[tuple[RowTile, OperandT] | None] = [None] * k.cfg.tensor.groups
        self._writers: dict[int, dict[int, _Writer]] = {}  # bank, row group at which sums leave
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
        self._k.columns_sent(max(self._columns) - before)
        writer = _Writer(tile, self._k.items(Queue.TENSOR), psum.tile.name)
        for bank in self._banks(psum):
            self._writers.setdefault(bank, {})[tile.last] = writer

    def _banks(self, psum: TileView) -> range:
        """Banks from that of the first element to that of the last."""
        size = self._k.cfg.psum.bank_bytes
        end = psum.offset + _BYTES * sum(step * (count - 1) for step, count in psum.dims)
        return range(psum.offset // size, end // size + 1)

    def needs(self, tile: RowTile, psum: TileView, accesses: tuple[Access, ...]) -> Known:
        """What must be complete before a matmul, matmuls before it included.

        Sums of different row groups leave in no order, so a bank belongs to one until its matmuls are complete.
        Tiles that could run together are told to take different banks.
        """
        k = self._k
        queue = int(Queue.TENSOR)
        needs = k.needs(Queue.TENSOR, accesses)
        for bank in self._banks(psum):
            for exit_, other in self._writers.get(bank, {}).items():
                if exit_ == tile.last or k.follows(Queue.TENSOR, needs, queue, other.count):
                    continue
                need(
                    bool(set(other.tile.groups) & set(tile.groups)),
                    f"a matmul on {tile} writes {psum.tile.name} in PSUM bank {bank}, where one on {other.tile} may "
                    f"still be writing {other.name}; tiles that run together write different banks",
                )
                needs[queue] = max(needs.get(queue, 0), other.count)
        return needs
