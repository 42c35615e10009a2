"""An operator on tensors of the device `plexus`: a program, or torch on the elements where there is none."""

import sys
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils import _pytree as pytree

from sim.torch.eager.one import one_operator
from sim.torch.eager.storage import host_tensor, on_device, renew, view_of, wrapped
from sim.torch.errors import TorchError
from sim.torch.lowering.table import HOST, OPERATORS
from sim.torch.options import TorchOptions
from sim.torch.place import is_users
from sim.torch.record import OnCpu

__all__ = ["Settings", "call", "settings"]


@dataclass
class Settings:
    """Of the device. `on_cpu`: operators that torch has computed, each once, by name."""

    options: TorchOptions = field(default_factory=TorchOptions)
    on_cpu: dict[str, OnCpu] = field(default_factory=dict)


settings = Settings()


def call(operator: Any, *args: Any, **kwargs: Any) -> Any:
    """What torch's dispatcher calls. Errors: TorchError, RunError."""
    flat, spec = pytree.tree_flatten((args, kwargs))
    hosts = {id(one): host_tensor(one) for one in flat if on_device(one)}
    plain = [hosts[id(one)] if id(one) in hosts else _on_host(one) for one in flat]
    host_args, host_kwargs = pytree.tree_unflatten(plain, spec)
    name = operator.name()
    with torch.no_grad():
        if name == "aten::_copy_from":
            source, target = host_args[0], host_args[1]
            target.copy_(source)
            return args[1]
        if name == "aten::_copy_from_and_resize":
            return host_args[1].resize_(host_args[0].shape).copy_(host_args[0])
        if _is_view(operator):
            found = operator(*host_args, **host_kwargs)
            return pytree.tree_map_only(torch.Tensor, lambda one: view_of(args[0], one), found)
        functional, targets, rest = _functional(operator, host_args, host_kwargs)
        result = _computed(operator, functional, host_args, host_kwargs, rest)
        if not targets:
            return _wrap(result, _of_cpu(kwargs.get("device")))
        for target, value in zip(targets, result if isinstance(result, (tuple, list)) else [result]):
            if target is not value:
                if tuple(target.shape) != tuple(value.shape):
                    target.resize_(value.shape)
                target.copy_(value)
        for one in flat:
            if id(one) in hosts:
                renew(one, hosts[id(one)])
        originals = {id(hosts[key]): one for one in flat if (key := id(one)) in hosts}
        found = tuple(originals.get(id(target), target) for target in targets)
        return found[0] if len(found) == 1 else found


def _of_cpu(device: Any) -> bool:
    return device is not None and torch.device(device).type != "plexus"


def _on_host(value: Any) -> Any:
    return torch.device("cpu") if isinstance(value, torch.device) and value.type == "plexus" else value


def _wrap(result: Any, host: bool = False) -> Any:
    if host:
        return result
    return pytree.tree_map_only(torch.Tensor, wrapped, result)


def _is_view(operator: Any) -> bool:
    returns = operator._schema.returns
    return any(one.alias_info is not None and not one.alias_info.is_write for one in returns)


def _functional(operator: Any, args: Any, kwargs: Any) -> tuple[Any, list[Any], dict[str, Any]]:
    """An operator of the table that computes the same without writing, what is written, and the other keywords."""
    schema = operator._schema
    if not schema.is_mutable:
        return operator, [], dict(kwargs)
    outs = [one.name for one in schema.arguments if one.is_out]
    if outs:
        rest = {name: value for name, value in kwargs.items() if name not in outs}
        names = [one.name for one in schema.arguments if not one.is_out]
        packet = operator.overloadpacket
        for overload in packet.overloads():
            other = getattr(packet, overload)
            if [one.name for one in other._schema.arguments] == names and other in OPERATORS:
                return other, [kwargs[name] for name in outs], rest
        return None, [kwargs[name] for name in outs], rest
    name = operator._schema.name.removeprefix("aten::")
    packet = getattr(torch.ops.aten, name.removesuffix("_"), None) if name.endswith("_") else None
    other = getattr(packet, operator._overloadname, None)
    return (other if other in OPERATORS else None), [args[0]] if args else [], dict(kwargs)


def _computed(operator: Any, functional: Any, args: Any, kwargs: Any, rest: dict[str, Any]) -> Any:
    """Results on the host, of a program if there is one."""
    line, printing = _line()
    tensors = [one for one in pytree.tree_leaves((args, rest)) if isinstance(one, torch.Tensor)]
    known = functional in OPERATORS
    if rest.get("device") is not None:
        pass  # it goes from here to there
    elif known and tensors and not printing and not OPERATORS[functional].moves and functional not in HOST:
        one = one_operator(functional, args, rest, line, settings.options)
        if one.why is None:
            found = one.run(*tensors)
            more = len(functional._schema.returns) - 1
            # what only a backward pass wants of a norm is torch's
            return (found[0], *operator(*args, **kwargs)[1:]) if more and len(found) == 1 else found
        _list(operator, line, one.why)
    elif not known and tensors and not printing and operator not in HOST and not _silent(operator):
        _list(operator, line, "there is no program for it")
    return operator(*args, **kwargs)


def _silent(operator: Any) -> bool:
    """Whether it moves elements or makes them, and computes nothing."""
    name = operator._schema.name.removeprefix("aten::")
    return name.startswith(
        (
            "copy",
            "_to_copy",
            "empty",
            "set_",
            "resize",
            "fill",
            "zero",
            "_local_scalar",
            "clone",
            "transpose_",
            "as_strided_",
        )
    )


def _list(operator: Any, line: str, why: str) -> None:
    name = str(operator)
    if not settings.options.fallback:
        raise TorchError(
            f"{line}: {name} is not computed on {settings.options.cfg.name}, for {why}, and fallback is off"
        )
    settings.on_cpu.setdefault(name, OnCpu(name, line, why))


def _line() -> tuple[str, bool]:
    """The user's line, and whether torch is making a text of a tensor."""
    frame, line, printing = sys._getframe(2), "", False
    while frame is not None:
        path = frame.f_code.co_filename
        printing = printing or path.endswith("_tensor_str.py")
        if not line and is_users(path):
            line = f"{path}:{frame.f_lineno}"
        frame = frame.f_back
    return line, printing
