"""Tiles of a product's result, and in which order the array works on them."""

from dataclasses import dataclass

from firmware.kernels.tiling import Chunk, Plan, Span

__all__ = ["LAST_TILES", "ResultTile", "result_tiles", "sequence_of"]

LAST_TILES = 3  # the last tile of the result is cut in so many


@dataclass(frozen=True, slots=True)
class ResultTile:
    """A tile of the result: stationary columns `s`, moving columns `v`, inside the chunks that hold them."""

    s: Span
    v: Span
    group: Span
    home: Span

    def chunks(self, k: int) -> tuple[Chunk, Chunk]:
        """What K tile `k` of it needs: a stationary and a moving chunk."""
        return (
            Chunk("s", self.group.source, k, self.group.start, self.group.size),
            Chunk("v", self.home.source, k, self.home.start, self.home.size),
        )


def result_tiles(plan: Plan, groups: list[list[Span]], narrowest: int) -> list[ResultTile]:
    """Result tiles in order. The last one is cut in narrower ones, so that little is left to copy and store
    when the array has finished."""
    home: dict[Span, Span] = {}
    for group in groups:
        first, last = group[0], group[-1]
        for s in group:
            home[s] = Span(s.source, first.start, last.start + last.size - first.start)
    tiles = [ResultTile(s, v, home[s], v) for s, v in plan.order]
    s, v = plan.order[-1]
    parts = [v]
    while parts[-1].size >= 2 * narrowest and len(parts) < LAST_TILES:
        last = parts.pop()
        left = -(-last.size // 16) * 8
        parts += [Span(v.source, last.start, left), Span(v.source, last.start + left, last.size - left)]
    return tiles[:-1] + [ResultTile(s, part, home[s], v) for part in parts]


def sequence_of(tiles: list[ResultTile], depth: int, together: bool) -> list[tuple[int, int]]:
    """(result tile, K tile) of each matmul. The first two tiles take turns if they share their moving chunks:
    the array then needs less than HBM gives from the start, and does not wait."""
    paired = together and len(tiles) > 2 and tiles[0].home == tiles[1].home and tiles[0].s != tiles[1].s
    first = [(tile, k) for k in range(depth) for tile in (0, 1)] if paired else []
    return first + [(tile, k) for tile in range(2 if paired else 0, len(tiles)) for k in range(depth)]
