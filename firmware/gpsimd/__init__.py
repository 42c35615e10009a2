"""Firmware of the GPSIMD engine: C, C++ and assembly, how they are compiled, and what a core takes (docs/firmware.md)."""
