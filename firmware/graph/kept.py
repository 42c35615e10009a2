"""Values of few rows that stay in SBUF, from the node that makes them to the last one that reads them.

Places are found before the first instruction: first fit among those whose value is still to be read. Who cannot read a
value there has it stored first.
"""

from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING

from firmware.graph.arrays import Array
from firmware.graph.ir import Node, Value
from firmware.kernels.spans import spans
from firmware.numbers import element_bytes
from firmware.views import Tile, TileView

if TYPE_CHECKING:
    from firmware.graph.emitter import Emitter

__all__ = ["Kept"]

SHARE = 4  # values take at most this part of SBUF
ALIGN = 16
STAGED = 64
READERS = {"matmul": "a", "layernorm": ("x", "residual"), "rmsnorm": ("x", "residual"), "attention": ("q", "k", "v")}
FLOATS = ("fp32", "bf16", "fp16")


@dataclass(slots=True)
class _Place:
    """Where a value [rows, columns] lies from `first` to `last` (numbers of nodes). turned: K-major for products."""

    offset: int
    bytes: int
    first: int
    last: int
    rows: int
    columns: int
    dtype: str
    turned: dict[str, int] = field(default_factory=dict)  # kind -> offset
    made: set[str] = field(default_factory=set)  # kinds that are there
    stored: bool = False


def _shape(node: Node) -> tuple[int, int] | None:
    """Rows and columns in which a node makes its value, if it is one of those that can leave it in SBUF."""
    shape, count = node.output.shape, prod(node.output.shape)
    if node.op in ("layernorm", "rmsnorm"):
        wide = shape[-1]
    elif node.op == "matmul":
        if len(node.inputs["b"].shape) != 2 or (node.attributes.get("transpose_a") and len(shape) != 2):
            return None
        wide = shape[-1]
    elif node.op == "attention":
        if shape[0] != 1 or "out" not in node.attributes.get("heads_last", ()):
            return None  # heads would lie on partitions from another one than 0 on
        wide = shape[-1] * shape[-2]
    else:
        return None
    return count // wide, wide


class Kept:
    """`plan` once, before the first node."""

    def __init__(self, emitter: "Emitter"):
        self._emitter = emitter
        self._size = min(emitter.cfg.tensor.rows, emitter.cfg.tensor.cols)
        self._planned: dict[str, _Place] = {}  # by value
        self._places: dict[str, _Place] = {}  # by tensor, once it is made
        self._tile: Tile | None = None
        self._stages: list[Tile] = []  # of values on their way to HBM in another format

    def plan(self) -> None:
        """Choose values, and take the room."""
        e = self._emitter
        limit = e.k.sbuf_free() // SHARE
        for number, node in enumerate(e.graph.nodes):
            shape = _shape(node)
            if shape is None or shape[0] > self._size or node.output.dtype not in FLOATS:
                continue
            last, kinds = self._readers(number, node.output)
            if last is None:
                continue
            only = set(kinds) == {"bf16"}  # all that read it round it so
            place = _Place(0, 0, number, last, *shape, "bf16" if only else node.output.dtype)
            kinds = [kind for kind in kinds if kind is not None and not only]
            place.bytes = self._padded(shape[1] * element_bytes(place.dtype))
            for kind in {kind for kind in kinds if kinds.count(kind) > 1}:
                place.turned[kind] = place.bytes
                place.bytes += self._padded(-(-shape[1] // self._size) * shape[0] * element_bytes(kind))
            if self._fit(place, limit):
                self._planned[node.output.name] = place
        if self._planned:
            wide = max(place.offset + place.bytes for place in self._planned.values())
            self._tile = e.k.sbuf("values", partitions=self._size, columns=wide, dtype="uint8")
        if any(place.dtype != "fp32" for place in self._planned.values()):
            self._stages = [
                e.k.sbuf(f"stage {i}", partitions=self._size, columns=STAGED, dtype="fp32") for i in range(2)
            ]

    def made(self, value: Value, array: Array) -> None:
        """The tensor of a value that a node is about to make."""
        if value.name in self._planned:
            self._places[array.tensor.name] = self._planned[value.name]

    def view(self, array: Array) -> TileView | None:
        """An array [rows, columns] in SBUF. None: it is not there, but in HBM."""
        place = self._places.get(array.tensor.name)
        if place is None or place.stored or self._tile is None or len(array.shape) != 2:
            return None
        row, column = divmod(array.offset, place.columns)
        near = array.strides[1] == 1 and (array.strides[0] == place.columns or array.shape[0] == 1)
        if not near or row or column + array.shape[1] > place.columns:
            self.store(array)
            return None
        at = place.offset // element_bytes(place.dtype) + column
        return self._tile_of(place.dtype)[: array.shape[0], at : at + array.shape[1]]

    def turned(self, array: Array, kind: str) -> tuple[list[TileView], bool] | None:
        """Tiles of K [depth, rows] of a whole value, for several products, and whether they are made already; they
        are to be made if not."""
        place = self._places.get(array.tensor.name)
        if place is None or kind not in place.turned or array.shape != (place.rows, place.columns) or place.stored:
            return None
        at = (place.offset + place.turned[kind]) // element_bytes(kind)
        tile, count = self._tile_of(kind), -(-place.columns // self._size)
        made = kind in place.made
        place.made.add(kind)
        return [tile[:, at + i * place.rows : at + (i + 1) * place.rows] for i in range(count)], made

    def store(self, array: Array) -> None:
        """Bring a value to HBM, if it is in SBUF alone."""
        place = self._places.get(array.tensor.name)
        if place is None or place.stored:
            return
        whole = Array(array.tensor, 0, (place.rows, place.columns), (place.columns, 1))
        view = self.view(whole)
        assert view is not None
        k, place.stored = self._emitter.k, True
        if view.dtype == array.dtype:
            k.dma(whole.view(), view)
            return
        for turn, cut in enumerate(spans(place.columns, STAGED)):
            tile = self._stages[turn % len(self._stages)].reinterpret(array.dtype)[: place.rows, : cut.size]
            k.vector.copy(tile, view[:, cut.start : cut.stop])
            k.dma(whole.part(1, cut.start, cut.size).view(), tile)

    def leave(self, array: Array) -> None:
        """The node at hand makes this value in HBM after all."""
        if array.tensor.name in self._places:
            self._places[array.tensor.name].stored = True

    def _tile_of(self, dtype: str) -> Tile:
        assert self._tile is not None
        return self._tile.reinterpret(dtype)

    @staticmethod
    def _padded(size_bytes: int) -> int:
        return -(-size_bytes // ALIGN) * ALIGN

    def _readers(self, number: int, value: Value) -> tuple[int | None, list[str | None]]:
        """The last node that reads a value, None if one reads it otherwise; to what each rounds it, if it does."""
        names, last, kinds = {value.name}, None, list[str | None]()
        nodes = self._emitter.graph.nodes
        for later in range(number + 1, len(nodes)):
            node = nodes[later]
            for name, given in node.inputs.items():
                if given.name not in names:
                    continue
                last = later
                if node.op == "reshape":
                    names.add(node.output.name)
                elif name not in READERS.get(node.op, ()) or node.attributes.get("transpose_a"):
                    return None, []
                elif node.op == "matmul":
                    kinds.append(node.attributes.get("kind", "bf16"))
                else:
                    kinds.append("bf16" if self._rounds(node) else None)
        if names & {output.name for output in self._emitter.graph.outputs}:
            return None, []
        return last, kinds

    @staticmethod
    def _rounds(node: Node) -> bool:
        """Whether it is attention in BF16 that reads all rows of its operands at once."""
        return node.op == "attention" and node.attributes.get("kind", "bf16") == "bf16" and node.output.shape[0] == 1

    def _fit(self, place: _Place, limit: int) -> bool:
        """Give it the lowest offset that is free for as long as it is needed."""
        taken = [p for p in self._planned.values() if p.last >= place.first]
        for offset in sorted([0, *(p.offset + p.bytes for p in taken)]):
            end = offset + place.bytes
            if end <= limit and all(end <= p.offset or offset >= p.offset + p.bytes for p in taken):
                place.offset = offset
                return True
        return False
