"""Each aten operator as nodes of firmware/graph/ir.py: one table, for compiled graphs and for the device."""
