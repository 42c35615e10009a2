"""Operators of a graph, one a file: `why_not` says what it cannot do, `emit` makes it."""
