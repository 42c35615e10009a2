"""Operands of the array in the format of a product, with the axis K on partitions."""

from dataclasses import replace

from firmware.graph.emitter import Emitter
from firmware.kernel import Tile, TileView
from firmware.numbers import element_bytes

__all__ = ["Turner"]

COLUMNS = 128  # that one copy brings out of PSUM
PLACES = 2  # banks of PSUM for transposes
SETS = 3
TURNED = ("fp32", "bf16")  # formats whose bits, as they leave the array, are FP32 numbers


class Turner:
    """Transposes by the array, and casts: `kind` is the format of what comes out."""

    def __init__(self, e: Emitter, kind: str):
        self.k, self.kind = e.k, kind
        cfg = e.cfg
        self.size = min(cfg.tensor.rows, cfg.tensor.cols)
        self.psum = [
            self.k.psum(
                f"turned {i}", partitions=self.size, columns=cfg.psum.bank_bytes // 4, align=cfg.psum.bank_bytes
            )
            for i in range(PLACES)
        ]
        self._turn = 0
        self._casts: list[Tile] = []
        self._cast = 0

    def turn(self, target: TileView, source: TileView) -> None:
        """target [columns, rows] = source [rows, columns], no larger than the array, converted."""
        if source.dtype not in TURNED:
            source = self.cast(source, "fp32")
        place = self.psum[self._turn % PLACES][: source.elements, : source.partitions]
        self._turn += 1
        self.k.tensor.transpose(source, place)
        engine = self.k.vector if self._turn % 2 else self.k.scalar
        engine.copy(target, place)

    def row(self, targets: list[TileView], sources: list[TileView]) -> None:
        """turn of several, which lie one behind the other and have as many rows each: few copies out of PSUM."""
        rows = sources[0].partitions
        together = max(1, min(COLUMNS, self.psum[0].columns) // rows)
        for first in range(0, len(targets), together):
            some = list(zip(targets, sources, strict=True))[first : first + together]
            whole = [pair for pair in some if pair[1].elements == some[0][1].elements]
            for target, source in some[len(whole) :]:
                self.turn(target, source)
            place = self.psum[self._turn % PLACES]
            self._turn += 1
            high = whole[0][1].elements
            for number, (_, source) in enumerate(whole):
                if source.dtype not in TURNED:
                    source = self.cast(source, "fp32")
                self.k.tensor.transpose(source, place[:high, number * rows : (number + 1) * rows])
            start = whole[0][0]
            step = (whole[-1][0].offset - start.offset) // max(1, len(whole) - 1) // element_bytes(start.dtype)
            target = replace(start, dims=((step or rows, len(whole)), (1, rows)))
            engine = self.k.vector if self._turn % 2 else self.k.scalar
            engine.copy(target, place[:high, : len(whole) * rows].split(0, rows))

    def cast(self, source: TileView, dtype: str) -> TileView:
        """Another tile with its values."""
        if not self._casts:
            self._casts = [
                self.k.sbuf(f"cast {i}", partitions=self.size, columns=self.size, dtype="fp32") for i in range(SETS)
            ]
        tile = self._casts[self._cast % SETS].reinterpret(dtype)
        self._cast += 1
        view = tile[: source.partitions, : source.elements]
        self.k.vector.copy(view, source)
        return view
