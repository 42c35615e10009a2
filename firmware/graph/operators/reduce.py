"""reduce: sum, mean, max, min over any axes. What stays lies on partitions, what goes along them."""

from itertools import product
from math import prod

from firmware.graph.emitter import Emitter
from firmware.graph.ir import Node
from firmware.graph.pieces import merged, pieces
from firmware.kernels.spans import spans
from firmware.views import Tile, TileView
from rtl.contract.config import Config

__all__ = ["emit", "why_not"]

OPERATORS = {"sum": "add", "mean": "add", "max": "max", "min": "min"}
FLOATS = ("fp32", "bf16", "fp16")
SETS = 2
COLUMNS = 2048


def why_not(cfg: Config, node: Node) -> str | None:
    """A reason, if the machine cannot do it."""
    if node.attributes["op"] not in OPERATORS:
        return f"there is no reduction {node.attributes['op']!r}; there are {', '.join(OPERATORS)}"
    if node.inputs["x"].dtype not in FLOATS:
        return f"it takes {', '.join(FLOATS)}, not {node.inputs['x'].dtype}"
    return None


def emit(e: Emitter, node: Node) -> None:
    """The output in HBM."""
    k, x = e.k, e.read(node.inputs["x"])
    axes = {a % len(x.shape) for a in node.attributes["axes"]}
    kept = [a for a in range(len(x.shape)) if a not in axes]
    gone = merged([x.shape[a] for a in sorted(axes)], [[x.strides[a] for a in sorted(axes)]]) or [(1, (0,))]
    op = OPERATORS[node.attributes["op"]]
    shape = tuple(x.shape[a] for a in kept)
    out = e.make(node.output).reshape(shape)
    mean = 1 / prod(n for n, _ in gone) if node.attributes["op"] == "mean" else None
    depth, (step,) = gone[-1]
    room = max(8, min(COLUMNS, k.sbuf_free() // 32))
    wide = max(1, min(room // 8, out.elements))  # results of a partition at a time
    cuts = list(pieces(shape, [out.strides, [x.strides[a] for a in kept]], k.cfg.partitions, wide))
    wide = max(prod(piece.shape[1:]) for piece in cuts)
    deep = max(1, min(depth, room // wide))
    tall = k.cfg.partitions
    given = [k.sbuf(f"x {i}", partitions=tall, columns=wide * deep, dtype=x.dtype) for i in range(SETS)]
    sums, parts = (
        [k.sbuf(f"{name} {i}", partitions=tall, columns=wide, dtype="fp32") for i in range(SETS)]
        for name in ("sum", "part")
    )
    made = [k.sbuf(f"out {i}", partitions=tall, columns=wide, dtype=out.dtype) for i in range(SETS)]
    turn = 0
    for number, piece in enumerate(cuts):
        rows, free = piece.shape[0], prod(piece.shape[1:])
        total = sums[number % SETS][:rows, :free]
        first = True
        for place in product(*(range(n) for n, _ in gone[:-1])):
            at = sum(i * s for i, (_, (s,)) in zip(place, gone[:-1], strict=True))
            for cut in spans(depth, deep):
                tile = given[turn % SETS]
                loaded = _view(tile, piece.shape, cut.size, innermost=step == 1)
                part = total if first else parts[turn % SETS][:rows, :free]
                turn += 1
                start = piece.offsets[1] + at + cut.start * step
                free_strides = piece.strides[1][1:]
                # Copies have three dimensions of rows: one for each element of the outer free axis.
                for index in range(piece.shape[1]) if len(piece.shape) == 3 else (None,):
                    if index is None:
                        target, sizes, strides = loaded, piece.shape[1:], free_strides
                    else:
                        target = loaded[:, index : index + 1]
                        sizes, strides = (1, piece.shape[2]), free_strides
                    more = 0 if index is None else index * free_strides[0]
                    source = x.strided(start + more, (rows, *sizes, cut.size), (piece.strides[1][0], *strides, step))
                    if step != 1:
                        source = source.permute((0, len(sizes) + 1, *range(1, len(sizes) + 1)))
                        order = (len(sizes), *range(len(sizes)))
                        k.dma(target.permute(order), source.view())
                    else:
                        k.dma(target, source.view())
                k.vector.reduce(part, loaded, op)
                if not first:
                    k.vector.tensor_tensor(total, total, op, part)
                first = False
        result = made[number % SETS][:rows, :free]
        if mean is None:
            k.vector.copy(result, total)
        else:
            k.vector.tensor_scalar(result, total, "multiply", mean)
        held = TileView(result.tile, 0, rows, result.offset, _steps(piece.shape[1:]))
        k.dma(out.strided(piece.offsets[0], piece.shape, piece.strides[0]).view(), held)


def _steps(shape: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    return tuple((prod(shape[i + 1 :]), n) for i, n in enumerate(shape))


def _view(tile: Tile, shape: tuple[int, ...], depth: int, *, innermost: bool) -> TileView:
    """(free axes, depth) of a tile; depth lies innermost, or outermost."""
    if innermost:
        dims, axis = tuple((step * depth, n) for step, n in _steps(shape[1:])), (1, depth)
    else:
        dims, axis = _steps(shape[1:]), (prod(shape[1:]), depth)
    return TileView(tile, 0, shape[0], tile.offset, (*dims, axis))
