"""Planted faults: every one of a unit lives in the same build and is chosen by an input.

A unit lists its faults in FAULTS (number from 1: what it does wrong) and takes `plant`, a value that
says which one is active. The product passes 0 and synthesis removes them; a bench build passes an
input of its top and must go red for every number.
"""

from amaranth.hdl import Const, Mux, Shape, Value, ValueCastable, ValueLike, unsigned

__all__ = ["passed_on", "planted"]


def planted(plant: ValueLike, number: int) -> Value:
    """1 while fault `number` is active; constant 0 in the product."""
    if isinstance(plant, int):
        return Const(int(plant == number), 1)
    if isinstance(plant, _PartsPlant):
        return plant.planted(number)
    return Value.cast(plant) == number


def passed_on(plant: ValueLike, *numbers: int) -> ValueLike:
    """The plant of a part whose faults 1, 2, ... are the whole's faults `numbers`; 0 in the product.

    A fault of the part that the whole does not offer is written as 0.
    """
    if isinstance(plant, int):
        return numbers.index(plant) + 1 if plant and plant in numbers else 0
    return _PartsPlant(plant, numbers)


class _PartsPlant(ValueCastable):
    """What passed_on gives: `planted` asks the whole's plant for the whole's number, and needs no renumbered value.

    The renumbered value is a chain of as many multiplexers as there are faults, written out wherever it is used: the
    check of instructions was 2.5 MB of Verilog with it and is 0.1 MB without.
    """

    def __init__(self, whole: ValueLike, numbers: tuple[int, ...]):
        self._whole = whole
        self._numbers = numbers

    def planted(self, number: int) -> Value:
        """1 while fault `number` of the part is active."""
        numbers = self._numbers
        if not 1 <= number <= len(numbers) or not numbers[number - 1] or numbers[number - 1] in numbers[number:]:
            return Const(0, 1)
        return planted(self._whole, numbers[number - 1])

    def shape(self) -> Shape:
        """Of the number as a value."""
        return unsigned(len(self._numbers).bit_length())

    def as_value(self) -> Value:
        """The number, for a part that has the plant as a port."""
        chosen: Value = Const(0, self.shape())
        for i, number in enumerate(self._numbers, 1):
            if number:
                chosen = Mux(planted(self._whole, number), i, chosen)
        return chosen
