"""layernorm and rmsnorm along the last axis, of a sum if there is a residual."""

from firmware.graph.arrays import Array
from firmware.graph.emitter import Emitter
from firmware.graph.ir import Node
from firmware.graph.rows import Rows, as_rows
from firmware.kernel import TileView
from firmware.kernels.spans import Span, spans
from rtl.contract.config import Config

__all__ = ["emit", "tables", "why_not"]

FLOATS = ("fp32", "bf16", "fp16")
STATISTICS_MAX = 512  # elements of one BN_STATS
TRIPLE = 3  # count, mean, variance * count


def why_not(cfg: Config, node: Node) -> str | None:
    """A reason, if the machine cannot do it."""
    kinds = {value.dtype for value in (*node.inputs.values(), node.output)}
    return None if kinds <= set(FLOATS) else f"it takes {', '.join(FLOATS)}, not {', '.join(sorted(kinds))}"


def tables(node: Node) -> set[str]:
    """Functions of the table that it needs."""
    return {"rsqrt"}


class _Norm:
    def __init__(self, e: Emitter, node: Node):
        self.k, self.rms = e.k, node.op == "rmsnorm"
        self.x = as_rows(e.find(node.inputs["x"]))
        self.out = as_rows(e.make(node.output))
        self.rest = as_rows(e.find(node.inputs["residual"])) if "residual" in node.inputs else None
        self.vectors = {n: e.read(node.inputs[n]) for n in ("gain", "shift") if n in node.inputs}
        self.epsilon = float(node.attributes.get("epsilon", 1e-5))
        self.width = self.x.shape[1]
        kinds = {"x": self.x.dtype, "work": "fp32", "out": self.out.dtype}
        kinds |= {"residual": self.rest.dtype} if self.rest is not None else {}
        kinds |= {name: array.dtype for name, array in self.vectors.items()}
        statistics = 4 * 2 * (TRIPLE + 6 * -(-self.width // STATISTICS_MAX))
        self.rows = Rows(e, (self.x.shape[0], self.width), kinds, statistics + 16 * 16)
        self.count = len(spans(self.rows.cuts[0].size, STATISTICS_MAX))
        self.kept: dict[str, TileView] = {}
        for name in self.vectors:
            early = e.vectors.take(node, name)
            if early is not None and self.rows.whole:
                self.kept[name] = early

    def given(self, tile: Span, cut: Span) -> TileView:
        """x, with the residual."""
        self.rows.turn()
        x = self.rows.load("x", self.x, tile, cut)
        if self.rest is None:
            return x
        work = self.rows.tile("work", tile, cut)
        self.k.vector.tensor_tensor(work, x, "add", self.rows.load("residual", self.rest, tile, cut))
        return work

    def vector(self, name: str, tile: Span, cut: Span) -> TileView | None:
        """Gain or shift on every partition, loaded once if a row is one piece."""
        if name not in self.vectors:
            return None
        if name not in self.kept or not self.rows.whole:
            whole = Span(0, self.rows.tall)
            target = self.rows.tile(name, whole, cut)
            source: Array = self.vectors[name].part(0, cut.start, cut.size).expand((whole.size, cut.size))
            self.k.dma(target, source.view())
            self.kept[name] = target
        return self.kept[name][: tile.size, :]

    def run(self) -> None:
        for tile in self.rows.tiles:
            self.tile(tile)

    def tile(self, tile: Span) -> None:
        k, rows = self.k, self.rows
        scale, moments = rows.columns("scale", tile), rows.columns("moments", tile, 2)
        statistics = rows.columns("statistics", tile, 1 if self.rms else TRIPLE + 6 * self.count)
        given = None
        for i, cut in enumerate(rows.cuts):
            given = self.given(tile, cut)
            if self.rms:
                made = rows.tile("out", tile, cut)
                total = statistics if i else moments[:, 0:1]
                k.scalar.activation(made, given, "square", reduce="reset_reduce", store=total)
                if i:
                    k.vector.tensor_tensor(moments[:, 0:1], moments[:, 0:1], "add", statistics)
                continue
            parts = spans(cut.size, STATISTICS_MAX)
            for number, part in enumerate(parts):
                at = TRIPLE + 6 * number
                k.vector.bn_stats(statistics[:, at : at + 6], given[:, part.start : part.stop])
            k.vector.bn_aggr(moments, statistics[:, 0 if i else TRIPLE : TRIPLE + 6 * len(parts)])
            if cut != rows.cuts[-1]:  # what all pieces so far are to the next one: count, mean, variance * count
                k.vector.memset(statistics[:, 0:1], float(cut.stop))
                k.vector.copy(statistics[:, 1:2], moments[:, 0:1])
                k.vector.tensor_scalar(statistics[:, 2:3], moments[:, 1:2], "multiply", float(cut.stop))
        if self.rms:
            k.scalar.activation(scale, moments[:, 0:1], "rsqrt", scale=1 / self.width, bias=self.epsilon)
        else:
            k.scalar.activation(scale, moments[:, 1:2], "rsqrt", bias=self.epsilon)
        for cut in rows.cuts:
            if not rows.whole or given is None:
                given = self.given(tile, cut)
            self.apply(tile, cut, given, moments[:, 0:1], scale)

    def apply(self, tile: Span, cut: Span, x: TileView, mean: TileView, scale: TileView) -> None:
        """A piece of the result."""
        vector, work = self.k.vector, self.rows.tile("work", tile, cut)
        made = self.rows.target("out", self.out, tile, cut)
        gain, shift = self.vector("gain", tile, cut), self.vector("shift", tile, cut)
        last = made if shift is None else work
        if self.rms and gain is not None:
            vector.scalar_tensor_tensor(last, x, "multiply", scale, "multiply", gain)
        elif self.rms:
            vector.tensor_scalar(last, x, "multiply", scale)
        elif gain is not None:
            vector.scalar_tensor_tensor(work, x, "subtract", mean, "multiply", gain)
            if shift is not None:
                vector.scalar_tensor_tensor(made, work, "multiply", scale, "add", shift)
                shift = None
            else:
                vector.tensor_scalar(made, work, "multiply", scale)
        else:
            vector.tensor_scalar(last, x, "subtract", mean, "multiply", scale)
        if shift is not None:
            vector.tensor_tensor(made, work, "add", shift)
        self.rows.store(self.out, tile, cut, made)


def emit(e: Emitter, node: Node) -> None:
    """The output in HBM."""
    _Norm(e, node).run()
