"""A Graph as one Program."""

from collections.abc import Mapping

import numpy as np

from firmware.engines.base import said_at
from firmware.graph.emitter import Emitter
from firmware.graph.fuse import fuse
from firmware.graph.ir import Graph, Node
from firmware.graph.supported import OPERATORS, why_not
from firmware.kernel import Kernel, KernelError
from firmware.program import Program
from rtl.contract.config import Config

__all__ = ["emit"]


def _about(node: Node) -> str:
    where = f" at {node.origin}" if node.origin else ""
    return f"{node.label or node.op}{where}"


def _tables(cfg: Config, nodes: tuple[Node, ...]) -> list[list[str]]:
    """Functions that each node needs in the table: those of all nodes if they fit together."""
    each = [sorted(OPERATORS[node.op].tables(node)) for node in nodes]
    together = sorted({name for names in each for name in names})
    if not together:
        return each
    try:
        Kernel(cfg, "tables").scalar.load_table(together)
    except KernelError:
        return each
    return [together if names else [] for names in each]


def emit(cfg: Config, graph: Graph, arrays: Mapping[str, np.ndarray] | None = None) -> Program:
    """A program whose inputs and outputs have the names of the graph's.

    arrays: bits (numbers.encode) of the inputs, zeros without it. Errors: KernelError, with the user's line.
    """
    graph = fuse(graph)
    for node in graph.nodes:
        if reason := why_not(cfg, node):
            raise KernelError(f"{_about(node)}: {reason}")
    e = Emitter(cfg, graph, arrays)
    tables = _tables(cfg, graph.nodes)
    if first := next((names for names in tables if names), None):
        with said_at("tables of functions"):  # of all nodes
            e.k.scalar.load_table(first)
    for node in graph.nodes:
        with said_at(node.where):
            OPERATORS[node.op].plan(e, node)
    e.kept.plan()
    e.vectors.plan()
    e.weights.start()
    for number, (node, names) in enumerate(zip(graph.nodes, tables, strict=True)):
        try:
            with e.node(number, node):
                if names:
                    e.k.scalar.load_table(names)
                e.vectors.step(number)
                OPERATORS[node.op].emit(e, node)
        except KernelError as error:
            raise KernelError(f"{_about(node)}: {error}") from None
    made = {node.output.name for node in graph.nodes}
    for value in graph.outputs:
        if value.name not in made:
            raise KernelError(f"graph {graph.name} has an output {value.name} that no node makes")
    return e.k.program(macs=e.macs)
