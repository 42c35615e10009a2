"""Planted faults: every one of a unit lives in the same build and is chosen by an input.

A unit lists its faults in FAULTS (number from 1: what it does wrong) and takes `plant`, a value that
says which one is active. The product passes 0 and synthesis removes them; a bench build passes an
input of its top and must go red for every number.
"""

from amaranth.hdl import Const, Mux, Value, ValueLike

__all__ = ["passed_on", "planted"]


def planted(plant: ValueLike, number: int) -> Value:
    """1 while fault `number` is active; constant 0 in the product."""
    if isinstance(plant, int):
        return Const(int(plant == number), 1)
    return Value.cast(plant) == number


def passed_on(plant: ValueLike, *numbers: int) -> ValueLike:
    """The plant of a part whose faults 1, 2, ... are the whole's faults `numbers`; 0 in the product.

    A fault of the part that the whole does not offer is written as 0.
    """
    if isinstance(plant, int):
        return numbers.index(plant) + 1 if plant and plant in numbers else 0
    chosen: ValueLike = Const(0, len(numbers).bit_length())
    for i, number in enumerate(numbers, 1):
        if number:
            chosen = Mux(planted(plant, number), i, chosen)
    return chosen
