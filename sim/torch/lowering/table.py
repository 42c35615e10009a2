"""All operators; importing this fills the table."""

from sim.torch import composite
from sim.torch.lowering import circular, elementwise, products, reductions, registry, shapes
from sim.torch.lowering.registry import HOST, OPERATORS, Operator

__all__ = ["HOST", "OPERATORS", "Operator"]

assert circular and composite and elementwise and products and reductions and registry and shapes
