"""Names that an engine of the kernel language has not, and where there is what they mean."""

from firmware.views import KernelError
from rtl.contract.isa import AluOp, Function

__all__ = ["AbsentError", "absent"]

_FUNCTIONS = {function.name.lower() for function in Function}
_OPERATORS = {operator.name.lower() for operator in AluOp}
_OF_THE_KERNEL = ("keeps", "forgets")
"""What engines have for it, and not for who writes one."""


class AbsentError(KernelError, AttributeError):
    """An engine is asked for what it does not do."""


def absent(engine: type, queue: str, name: str) -> AbsentError:
    """The sentence about `k.<queue>.<name>`, which the class has not."""
    said = (n for n in dir(engine) if not n.startswith("_") and n not in _OF_THE_KERNEL)
    there = sorted(n for n in said if callable(getattr(engine, n)))
    meant = ""
    if name in _FUNCTIONS and (queue == "scalar" or name not in _OPERATORS):
        meant = f'; {name} is a function of k.scalar.activation: activation(dst, x, "{name}")'
    elif name in _OPERATORS:
        meant = f'; {name} is an operator, as in k.vector.tensor_tensor(dst, x, "{name}", y)'
    return AbsentError(f"there is no k.{queue}.{name}; there are {', '.join(there)}{meant}")
