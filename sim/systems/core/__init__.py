"""A core: a workload on the RTL beside the golden machine (`run`), and the Verilated core as a device (`verilated`)."""
