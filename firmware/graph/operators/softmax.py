"""softmax along the last axis: maximum, exponentials with their sum, product with its reciprocal."""

from firmware.graph.arrays import Array
from firmware.graph.emitter import Emitter
from firmware.graph.ir import Node
from firmware.graph.rows import Rows, as_rows
from rtl.contract.config import Config

__all__ = ["emit", "softmax", "why_not"]

FLOATS = ("fp32", "bf16", "fp16")


def why_not(cfg: Config, node: Node) -> str | None:
    """A reason, if the machine cannot do it."""
    kinds = [node.inputs["x"].dtype, node.output.dtype]
    return None if all(kind in FLOATS for kind in kinds) else f"it takes {', '.join(FLOATS)}, not {', '.join(kinds)}"


def emit(e: Emitter, node: Node) -> None:
    """The output in HBM."""
    softmax(e, as_rows(e.make(node.output)), as_rows(e.read(node.inputs["x"])))


def softmax(e: Emitter, out: Array, x: Array) -> None:
    """out = softmax of each row of x. A row that does not fit comes three times: maximum, sum, result."""
    vector = e.k.vector
    rows = Rows(e, (x.shape[0], x.shape[1]), {"x": x.dtype, "work": "fp32", "out": out.dtype}, 16 * 12)
    for tile in rows.tiles:
        top, total, more, inverse = (rows.columns(name, tile) for name in ("top", "total", "more", "inverse"))
        for i, cut in enumerate(rows.cuts):
            rows.turn()
            given = rows.load("x", x, tile, cut)
            vector.reduce(more if i else top, given, "max")
            if i:
                vector.tensor_tensor(top, top, "max", more)
        if rows.whole:
            cut = rows.cuts[0]
            work, made = rows.tile("work", tile, cut), rows.tile("out", tile, cut)
            vector.exp(work, rows.tile("x", tile, cut), top, reduce="reset_reduce", store=total)
            vector.reciprocal(inverse, total)
            vector.tensor_scalar(made, work, "multiply", inverse)
            rows.store(out, tile, cut, made)
            continue
        for i, cut in enumerate(rows.cuts):
            rows.turn()
            given, work = rows.load("x", x, tile, cut), rows.tile("work", tile, cut)
            vector.exp(work, given, top, reduce="reset_reduce", store=more if i else total)
            if i:
                vector.tensor_tensor(total, total, "add", more)
        vector.reciprocal(inverse, total)
        for cut in rows.cuts:
            rows.turn()
            given, work, made = rows.load("x", x, tile, cut), rows.tile("work", tile, cut), rows.tile("out", tile, cut)
            vector.exp(work, given, top)
            vector.tensor_scalar(made, work, "multiply", inverse)
            rows.store(out, tile, cut, made)
