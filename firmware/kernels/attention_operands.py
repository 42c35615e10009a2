"""Operands of attention on their way from HBM to SBUF: queries of each head, keys and values of each group of heads."""

from firmware.kernel import ALLOCATION_BYTES, HbmView, Kernel, Tile
from firmware.kernels.attention_core import FIRST_TILES, Attention, Head
from firmware.kernels.spans import Span, cut_spans, spans

__all__ = ["Operands"]


class Operands:
    """SBUF for the operands of some heads, and their loads: what is used first comes first."""

    def __init__(self, k: Kernel, engine: Attention, q_t: HbmView, k_t: HbmView, v: HbmView):
        self.k = k
        self.views = q_t, k_t, v
        heads, self.dims, self.queries = q_t.shape
        shared, self.seq, self.values = v.shape
        self.group = heads // shared
        self.size, self.block = engine.size, engine.block
        self.parts = spans(self.dims, k.cfg.tensor.rows)
        self.keys = spans(self.seq, self.size)
        of_q, of_k = (len(self.parts) * self._allocated(n) for n in (self.queries, self.seq))
        of_v = self._allocated(len(self.keys) * self.values)

        def sets(count: int) -> tuple[int, int]:
            """Sets of queries, and of keys and values, for so many heads of queries in use."""
            return count, min(shared, -(-(count - 1) // self.group) + 1)

        least, most = engine.heads_at_once(heads)
        room = k.sbuf_free() - ALLOCATION_BYTES - engine.scaled_bytes
        counts = [least, *range(least + 1, most + 1)]
        of_queries, of_keys = [
            sets(n) for n in counts if n == least or self._bytes(sets(n), of_q, of_k + of_v) <= room
        ][-1]
        columns = len(self.keys) * self.values
        self.q_sets: list[list[Tile]] = []
        self.k_sets: list[list[Tile]] = []
        self.v_sets: list[Tile] = []
        for i in range(of_queries):
            if i < of_keys:
                self.v_sets.append(k.sbuf(f"v{i}", partitions=self.size, columns=columns, dtype="bf16"))
            self.q_sets.append(self._axis(f"q{i}_", self.queries))
            if i < of_keys:
                self.k_sets.append(self._axis(f"k{i}_", self.seq))

    @staticmethod
    def _allocated(columns: int) -> int:
        """Bytes of a partition that a tile of BF16 columns takes."""
        return -(-columns * 2 // ALLOCATION_BYTES) * ALLOCATION_BYTES

    @staticmethod
    def _bytes(sets: tuple[int, int], of_queries: int, of_keys: int) -> int:
        return sets[0] * of_queries + sets[1] * of_keys

    def _axis(self, name: str, columns: int) -> list[Tile]:
        return [
            self.k.sbuf(f"{name}{i}", partitions=part.size, columns=columns, dtype="bf16")
            for i, part in enumerate(self.parts)
        ]

    def _columns(self, tiles: list[Tile], source: HbmView, head: int, part: Span) -> None:
        """Some columns of Q^T or K^T."""
        for rows, tile in zip(self.parts, tiles, strict=True):
            columns = slice(part.start, part.stop)
            self.k.dma(tile[:, columns], source[head, rows.start : rows.stop, columns])

    def load(self, head: int) -> Head:
        """Bring a head's operands into SBUF, keys and values with the first of a group."""
        q_t, k_t, v = self.views
        shared = head // self.group
        queries_tile = self.q_sets[head % len(self.q_sets)]
        keys_tile, values = self.k_sets[shared % len(self.k_sets)], self.v_sets[shared % len(self.v_sets)]
        # The first head's come in pieces: the first product needs a tile of Q and some tiles of K.
        places = [n * self.size for n in FIRST_TILES] + [self.block]
        queries = cut_spans(self.queries, [] if head else [self.size])
        first = head % self.group == 0
        keys = cut_spans(self.seq, [] if head else places) if first else []
        self._columns(queries_tile, q_t, head, queries[0])
        for part in keys[: len(places)]:
            self._columns(keys_tile, k_t, shared, part)
        for part in queries[1:]:
            self._columns(queries_tile, q_t, head, part)
        for part in keys[len(places) :]:
            self._columns(keys_tile, k_t, shared, part)
        if first:
            self._load_values(values, v, shared)
        return Head(
            [t[:, :] for t in queries_tile],
            [t[:, :] for t in keys_tile],
            [values[: s.size, i * self.values : (i + 1) * self.values] for i, s in enumerate(self.keys)],
        )

    def _load_values(self, tile: Tile, v: HbmView, head: int) -> None:
        """All values of a head, a tile of keys beside the other."""
        whole = self.seq // self.size
        if whole:
            source = v[head, : whole * self.size, :].split(0, self.size).permute((1, 0, 2))
            self.k.dma(tile[:, : whole * self.values].split(0, self.values), source)
        if self.seq % self.size:
            rest = slice(whole * self.size, self.seq)
            self.k.dma(tile[: self.seq % self.size, whole * self.values :], v[head, rest, :])
