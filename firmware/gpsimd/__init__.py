"""Firmware of the GPSIMD engine: C and C++, how they are compiled, and what a core takes (docs/firmware.md)."""
