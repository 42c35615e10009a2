"""Nodes that become one: Graph to Graph, nothing else changes."""

from firmware.graph.ir import Graph

__all__ = ["fuse"]


def fuse(graph: Graph) -> Graph:
    """The same outputs from fewer nodes."""
    return graph
