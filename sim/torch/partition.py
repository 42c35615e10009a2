"""Which nodes of a graph the machine computes, in as few programs as there can be."""

import operator
from collections.abc import Mapping
from typing import Any

import torch
from torch import fx
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from sim.torch.lowering.table import HOST, OPERATORS
from sim.torch.place import line_of, name_of
from sim.torch.record import OnCpu
from sim.torch.translate import WhyNot, why_unsupported

__all__ = ["partition"]


class _Support(OperatorSupportBase):
    def __init__(self, products: str, why_not: WhyNot):
        self._products, self._why_not = products, why_not
        self.why: dict[fx.Node, str | None] = {}

    def is_node_supported(self, submodules: Mapping[str, torch.nn.Module], node: fx.Node) -> bool:
        if node.op != "call_function":
            return False
        if node not in self.why:
            self.why[node] = why_unsupported(node, self._products, self._why_not)
        return self.why[node] is None


def _moves(node: fx.Node) -> bool:
    return node.target is operator.getitem or OPERATORS[node.target].moves


def partition(
    gm: fx.GraphModule, products: str, why_not: WhyNot, alone: bool = False
) -> tuple[fx.GraphModule, list[str], list[OnCpu]]:
    """The graph with a submodule for each program, their names, and what torch computes. Nodes that only move elements
    are torch's unless they stand beside others, or may be `alone`."""
    support = _Support(products, why_not)
    partitioner = CapabilityBasedPartitioner(gm, support, allows_single_node_partition=True)
    parts = partitioner.propose_partitions()
    chosen = [part for part in parts if alone or not all(_moves(node) for node in part.nodes)]
    on_cpu: list[OnCpu] = []
    for node in gm.graph.nodes:
        why: Any = support.why.get(node)
        if why is None or node.target is operator.getitem:
            continue
        hosts = node.target in HOST or _by_number(node)
        on_cpu.append(OnCpu(name_of(node), line_of(node), str(HOST.get(node.target, why)), hosts))
    fused = partitioner.fuse_partitions(chosen, prefix="program_")
    names = [str(node.target) for node in fused.graph.nodes if node.op == "call_module"]
    return fused, names, on_cpu


def _by_number(node: fx.Node) -> bool:
    """Whether a node makes whole numbers: places and counts, which are the host's."""
    found = node.meta.get("val")
    return isinstance(found, torch.Tensor) and found.dtype == torch.int64
