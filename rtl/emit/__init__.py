"""Amaranth to Verilog: one module for all equal parts, lanes as loops, planted faults of a bench's build
(docs/building.md)."""
