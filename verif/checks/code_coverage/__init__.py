"""Line and toggle coverage of the RTL: Verilator's counts, by the Python file that describes a unit."""
