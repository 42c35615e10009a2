"""The device `plexus`: its name, its hooks, and the options of its programs. Light, for `import torch` calls it."""

from typing import Any

import torch
from torch.utils import backend_registration

__all__ = ["device_options", "on_cpu", "set_up"]

_IN_PLACE = ("t_", "transpose_", "squeeze_", "unsqueeze_", "as_strided_")
"""Operators that change the shape of their tensor, and nothing else."""
_libraries: list[torch.library.Library] = []


class _Module:
    """What torch.plexus is, and torch asks for: one device, no random state, no streams."""

    def is_initialized(self) -> bool:
        return True

    def is_available(self) -> bool:
        return True

    def current_device(self) -> int:
        return 0

    def device_count(self) -> int:
        return 1

    def synchronize(self, device: Any = None) -> None:
        return None

    def _is_in_bad_fork(self) -> bool:
        return False

    def manual_seed_all(self, seed: int) -> None:
        return None

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16, torch.float16]


def set_up() -> None:
    """Once: the name of the device, and one function for all of its operators."""
    if _libraries:
        return
    if torch._C._get_privateuse1_backend_name() != "privateuseone":
        return  # another package has taken torch's only place for a device; torch.compile still works
    backend_registration._setup_privateuseone_for_python_backend("plexus", backend_module=_Module())
    torch.Tensor.tolist = _tolist  # torch's own reads the storage, which has no elements here
    torch.Tensor.__deepcopy__ = _deepcopy  # torch's own copies the storage
    library = torch.library.Library("_", "IMPL")
    library.fallback(_operator, "PrivateUse1")
    _libraries.append(library)


_tolist_of_torch = torch.Tensor.tolist


def _tolist(self: torch.Tensor) -> Any:
    """As torch's; printing a tensor comes here too."""
    return _tolist_of_torch(self.cpu() if self.device.type == "plexus" else self)


_deepcopy_of_torch = torch.Tensor.__deepcopy__


def _deepcopy(self: torch.Tensor, memo: dict[int, Any]) -> Any:
    """As torch's."""
    if self.device.type != "plexus" or not self.is_leaf or id(self) in memo:
        return _deepcopy_of_torch(self, memo)
    with torch.no_grad():
        made = memo[id(self)] = self.detach().clone().requires_grad_(self.requires_grad)
    return made


def _operator(operator: Any, *args: Any, **kwargs: Any) -> Any:
    from sim.torch.eager.operators import call

    if len(_libraries) == 1:
        _whole_operators()
    return call(operator, *args, **kwargs)


def _whole_operators() -> None:
    """Operators that torch would take apart for a device that has none of them, kept whole."""
    from sim.torch.eager.operators import call
    from sim.torch.lowering.table import HOST, OPERATORS

    library = torch.library.Library("aten", "IMPL")
    _libraries.append(library)
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    shapes = [getattr(torch.ops.aten, name) for name in _IN_PLACE]
    renewed = [getattr(one, overload) for one in shapes for overload in one.overloads()]
    for operator in (*(one for one, how in OPERATORS.items() if not how.moves), *HOST, *renewed):
        name = operator.name()
        composite = any(
            has(name, key) for key in ("CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional")
        )
        if name.startswith("aten::") and composite:

            def run(*args: Any, _operator: Any = operator, **kwargs: Any) -> Any:
                return call(_operator, *args, **kwargs)

            library.impl(name.removeprefix("aten::"), run, "PrivateUse1")


def device_options(**given: Any) -> None:
    """How tensors on the device `plexus` compute from now on: the options of the backend; those left out have their
    defaults. Errors: TorchError."""
    from sim.torch.eager import operators
    from sim.torch.options import torch_options

    operators.settings.options = torch_options(given)


def on_cpu() -> tuple[Any, ...]:
    """OnCpu of each operator on the device that torch has computed, once, by name."""
    from sim.torch.eager import operators

    return tuple(operators.settings.on_cpu.values())
