"""Gains and shifts of norms on all partitions, loaded while the node before is at work."""

from math import prod
from typing import TYPE_CHECKING

from firmware.graph.ir import Node
from firmware.numbers import element_bytes
from firmware.views import Tile, TileView

if TYPE_CHECKING:
    from firmware.graph.emitter import Emitter

__all__ = ["Vectors"]

SHARE = 8  # slots take at most this part of SBUF
SLOTS = 4  # of two norms
NAMES = ("gain", "shift")


class Vectors:
    """`plan` once, `step` before each node; `take` gives what is there."""

    def __init__(self, emitter: "Emitter"):
        self._emitter = emitter
        self._due: dict[int, list[Node]] = {}  # norms by the node during which theirs are loaded
        self._tiles: list[Tile] = []
        self._loaded: dict[tuple[str, str], TileView] = {}
        self._turn = 0

    def plan(self) -> None:
        """Find the norms with constants, and take the room."""
        e, size = self._emitter, 0
        before = 0
        for number, node in enumerate(e.graph.nodes):
            vectors = [node.inputs[n] for n in NAMES if n in node.inputs and e.constant(node.inputs[n]) is not None]
            if node.op in ("layernorm", "rmsnorm") and vectors:
                self._due.setdefault(before, []).append(node)
                size = max(size, *(prod(v.shape) * element_bytes(v.dtype) for v in vectors))
            if node.op != "reshape":
                before = number
        size = -(-size // 4) * 4
        if not self._due or size * SLOTS > e.k.sbuf_free() // SHARE:
            self._due.clear()
            return
        self._tiles = [
            e.k.sbuf(f"vectors {i}", partitions=e.cfg.partitions, columns=size, dtype="uint8") for i in range(SLOTS)
        ]

    def step(self, number: int) -> None:
        """Load what the norm behind this node needs."""
        e = self._emitter
        for node in self._due.get(number, ()):
            for name in NAMES:
                if name not in node.inputs or e.constant(node.inputs[name]) is None:
                    continue
                array = e.read(node.inputs[name])
                tile = self._tiles[self._turn % SLOTS].reinterpret(array.dtype)
                self._turn += 1
                rows = min(e.cfg.partitions, prod(node.output.shape) // array.shape[0])
                target = tile[:rows, : array.shape[0]]
                e.k.dma(target, array.expand((rows, array.shape[0])).view())
                self._loaded[node.output.name, name] = target

    def take(self, node: Node, name: str) -> TileView | None:
        """The vector of a norm [rows, columns], if it was loaded ahead."""
        return self._loaded.pop((node.output.name, name), None)
