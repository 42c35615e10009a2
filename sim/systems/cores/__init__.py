"""Cores joined by delayed wires: programs of several cores on the RTL (`joined`), and workloads of such (`run`)."""
