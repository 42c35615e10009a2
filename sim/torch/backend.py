"""The backend `plexus` of torch.compile."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import fx

from firmware.graph.emit import why_not
from sim.torch.compiled import CompiledGraph
from sim.torch.composite import keep_whole
from sim.torch.errors import TorchError
from sim.torch.folding import fold
from sim.torch.lowering.table import OPERATORS
from sim.torch.options import TorchOptions, torch_options
from sim.torch.partition import partition

__all__ = ["backend"]

Compiled = Callable[..., Any]


def _decompositions() -> dict[Any, Callable[..., Any]]:
    """Those of torch's core set, but for operators that we have."""
    from torch._decomp import core_aten_decompositions

    return {name: how for name, how in core_aten_decompositions().items() if name not in OPERATORS}


def backend(gm: fx.GraphModule, example_inputs: Sequence[Any], **given: Any) -> Compiled:
    """Compile a graph of torch.compile: forward, of fixed shapes. What is refused is said when it is called, as a
    TorchError, so that torch does not wrap the sentence.

    gm: the graph; example_inputs: its inputs. given: `options` (TorchOptions), and no other."""
    try:
        return _compiled(gm, example_inputs, given)
    except TorchError as error:
        return partial(_refuse, str(error))


def _refuse(sentence: str, *args: Any) -> Any:
    raise TorchError(sentence)


def _compiled(gm: fx.GraphModule, example_inputs: Sequence[Any], given: dict[str, Any]) -> Compiled:
    if given.get("mode") is not None:
        raise TorchError(f"backend plexus has no mode {given['mode']!r}; it takes options")
    options = torch_options(given.get("options"))
    for one in example_inputs:
        _need_what_is_compiled(one)
    static = [_static(one) for one in example_inputs]
    keep_whole(gm.graph)
    gm.recompile()
    from torch._functorch.aot_autograd import aot_module_simplified

    with torch.no_grad():
        return aot_module_simplified(
            gm,
            list(example_inputs),
            fw_compiler=partial(_forward, static=static, options=options),
            decompositions=_decompositions(),
        )


def _static(one: Any) -> bool:
    return isinstance(one, torch.nn.Parameter) or getattr(one, "_dynamo_static_input_type", None) is not None


def _need_what_is_compiled(one: Any) -> None:
    if (
        isinstance(one, torch.SymInt)
        or isinstance(one, torch.Tensor)
        and any(isinstance(n, torch.SymInt) for n in one.shape)
    ):
        raise TorchError(
            "backend plexus compiles fixed shapes, and torch asks for dynamic ones: torch.compile(..., dynamic=False) "
            "makes a graph of each shape"
        )
    if isinstance(one, torch.Tensor) and one.device.type not in ("cpu", "meta"):
        raise TorchError(
            f"backend plexus takes tensors on the CPU, and one of shape {list(one.shape)} lies on {one.device}: a "
            "model on the device plexus runs without torch.compile"
        )
    if isinstance(one, torch.Tensor) and one.requires_grad and torch.is_grad_enabled():
        raise TorchError(
            f"backend plexus computes forward only, and a tensor of shape {list(one.shape)} requires a gradient: call "
            "the model under torch.no_grad() or torch.inference_mode()"
        )


def _forward(
    gm: fx.GraphModule, example_inputs: Sequence[Any], *, static: list[bool], options: TorchOptions
) -> Compiled:
    """What aot_autograd calls with the graph of aten operators."""
    places = sum(node.op == "placeholder" for node in gm.graph.nodes)
    if places != len(static):  # torch has put inputs that share memory together
        static = [False] * places
    fold(gm)
    cfg = options.cfg
    fused, names, on_cpu = partition(gm, options.products, partial(why_not, cfg))
    refused = [one for one in on_cpu if not one.host]
    if refused and not options.fallback:
        one = refused[0]
        return _boxed(
            partial(
                _refuse,
                f"{one.line or 'this graph'}: {one.operator} is not computed on {cfg.name}, for {one.why}, and "
                "fallback is off",
            )
        )
    return _boxed(CompiledGraph(fused, names, on_cpu, static, options))


def _boxed(function: Compiled) -> Compiled:
    from functorch.compile import make_boxed_func

    return make_boxed_func(function)
