"""One operator as a graph of one node, and its program, kept by operator, shapes and line."""

import operator as python_operator
from collections import OrderedDict
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from firmware.graph.emit import why_not
from sim.torch.compiled import CompiledGraph
from sim.torch.options import TorchOptions
from sim.torch.partition import partition
from sim.torch.place import name_of
from sim.torch.translate import why_unsupported

__all__ = ["OneOperator", "one_operator"]

KEPT = 256
_known: OrderedDict[Any, "OneOperator"] = OrderedDict()


class OneOperator:
    """`why`: why the machine has it not, or None. `run` takes the tensors among the arguments, gives its results."""

    def __init__(self, operator: Any, args: Any, kwargs: Any, line: str, options: TorchOptions):
        graph = fx.Graph()
        metas: list[torch.Tensor] = []

        def place(tensor: torch.Tensor) -> fx.Node:
            node = graph.placeholder(f"x{len(metas)}")
            metas.append(torch.empty(tuple(tensor.shape), dtype=tensor.dtype, device="meta"))
            node.meta["val"] = metas[-1]
            return node

        nodes, spec = pytree.tree_flatten((args, kwargs))
        nodes = [place(one) if isinstance(one, torch.Tensor) else one for one in nodes]
        placed = [one.meta["val"] if isinstance(one, fx.Node) else one for one in nodes]
        self.options = options  # held: its id is part of the key
        self.why: str | None = None
        try:
            meta_args, meta_kwargs = pytree.tree_unflatten(placed, spec)
            self._result: Any = operator(*meta_args, **meta_kwargs)
        except (RuntimeError, NotImplementedError) as error:
            self.why = f"its result has no known shape ({str(error).splitlines()[0]})"
            return
        node_args, node_kwargs = pytree.tree_unflatten(nodes, spec)
        node = graph.call_function(operator, tuple(node_args), dict(node_kwargs))
        node.meta.update(
            val=self._result, stack_trace=f'File "{line.rpartition(":")[0]}", line {line.rpartition(":")[2]}, in _'
        )
        self.why = why_unsupported(node, options.products, partial(why_not, options.cfg))
        if self.why is None:
            graph.output(self._outputs(graph, node))
            gm = fx.GraphModule(torch.nn.Module(), graph)
            fused, names, _ = partition(gm, options.products, partial(why_not, options.cfg), alone=True)
            self.run = CompiledGraph(fused, names, (), [False] * len(metas), options, name_of(node))

    def _outputs(self, graph: fx.Graph, node: fx.Node) -> Any:
        """Results that are made; the others are None, and nobody but a backward pass wants them."""
        if isinstance(self._result, torch.Tensor):
            return node
        found: list[Any] = []
        for i, meta in enumerate(self._result):
            part = graph.call_function(python_operator.getitem, (node, i))
            part.meta.update(val=meta, stack_trace=node.meta["stack_trace"])
            found.append(part)
        first_only = str(node.target).startswith(("aten.native_layer_norm", "aten._native_batch_norm"))
        return tuple(found[:1]) if first_only else tuple(found)


def one_operator(
    operator: Any, args: Sequence[Any], kwargs: dict[str, Any], line: str, options: TorchOptions
) -> OneOperator:
    """Made once for each operator, arguments, shapes and line."""
    flat, spec = pytree.tree_flatten((tuple(args), kwargs))
    told = tuple((tuple(one.shape), one.dtype) if isinstance(one, torch.Tensor) else repr(one) for one in flat)
    key = (operator, told, spec, line, id(options))
    if key not in _known:
        _known[key] = OneOperator(operator, tuple(args), kwargs, line, options)
        while len(_known) > KEPT:
            _known.popitem(last=False)
    _known.move_to_end(key)
    return _known[key]
