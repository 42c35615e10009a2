"""The native driver: C++ around a Verilated model, called through ctypes; no Python per cycle."""
