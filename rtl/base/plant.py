"""Planted faults: every one of a unit lives in the same build and is chosen by an input.

A unit lists its faults in FAULTS (number from 1: what it does wrong) and takes `plant`, a value that
says which one is active. The product passes 0 and synthesis removes them; a bench build passes an
input of its top and must go red for every number.
"""

from amaranth.hdl import Const, Value, ValueLike

__all__ = ["planted"]


def planted(plant: ValueLike, number: int) -> Value:
    """1 while fault `number` is active; constant 0 in the product."""
    if isinstance(plant, int):
        return Const(int(plant == number), 1)
    return Value.cast(plant) == number
