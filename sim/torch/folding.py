"""What does not depend on a call is computed once, by torch: masks, positions, fills."""

from collections.abc import Mapping

import torch
from torch import fx
from torch.utils._python_dispatch import _disable_current_modes

__all__ = ["fold"]

BYTES_MAX = 1 << 28
_INT32 = torch.iinfo(torch.int32)
_ITS_OWN = (torch.Tag.nondeterministic_seeded,)


def fold(gm: fx.GraphModule) -> None:
    """Nodes that depend on constants alone become constants. Marks integers of 64 bits that fit into 32."""
    with torch.no_grad(), _disable_current_modes():  # tensors of the graph are real here, and fake outside
        _fold(gm)


def _fold(gm: fx.GraphModule) -> None:
    known: dict[fx.Node, torch.Tensor] = {}
    for node in list(gm.graph.nodes):
        if node.op == "get_attr" and isinstance(found := getattr(gm, str(node.target), None), torch.Tensor):
            known[node] = found.detach()
        elif _foldable(node) and all(one in known for one in node.all_input_nodes):
            args, kwargs = fx.map_arg((node.args, node.kwargs), known.__getitem__)
            found = node.target(*args, **kwargs)
            if not isinstance(found, torch.Tensor) or found.numel() * found.element_size() > BYTES_MAX:
                continue
            name = f"_plexus_constant_{len(known)}"
            gm.register_buffer(name, found.contiguous(), persistent=False)
            with gm.graph.inserting_before(node):
                one = gm.graph.get_attr(name)
            one.meta = dict(node.meta)
            node.replace_all_uses_with(one)
            known[one] = found
    _own_results(gm.graph, known)
    gm.graph.eliminate_dead_code()
    gm.recompile()
    for node, found in known.items():
        if found.dtype == torch.int64 and found.numel():
            node.meta["plexus_int32"] = bool(_INT32.min <= found.min() and found.max() <= _INT32.max)


def _own_results(graph: fx.Graph, known: Mapping[fx.Node, torch.Tensor]) -> None:
    """A constant that is a result is copied in each call, for the caller may write into it."""
    output = next(node for node in graph.nodes if node.op == "output")
    for one in [one for one in output.all_input_nodes if one in known]:
        with graph.inserting_before(output):
            copy = graph.call_function(torch.ops.aten.clone.default, (one,))
        copy.meta = dict(one.meta)
        output.replace_input_with(one, copy)


def _foldable(node: fx.Node) -> bool:
    if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
        return False
    if any(tag in node.target.tags for tag in _ITS_OWN) or node.target._schema.is_mutable:
        return False
    device = node.kwargs.get("device")
    return device is None or str(device) == "cpu"
