"""Registers that ended a run: numbers that a program has no room for."""

from collections.abc import Mapping

from firmware.decisions.numbers import Register
from firmware.program import Program
from rtl.contract.isa import Cause

__all__ = ["told", "wrong_register"]


def wrong_register(cause: Cause, program: Program, registers: Mapping[int, int]) -> Register | None:
    """The first one beyond its bounds, if that is why a queue halted. `registers`: their values by index."""
    if cause != Cause.BAD_SIZE:
        return None
    return next((r for r in program.registers if not 0 <= registers.get(r.index, 0) <= r.high), None)


def told(register: Register, registers: Mapping[int, int]) -> str:
    """What is wrong with it, in a sentence."""
    return (
        f"{register.tensor} is {registers[register.index]}, and the kernel has room for 0 to {register.high} "
        f"(k.register at {register.place})"
    )
