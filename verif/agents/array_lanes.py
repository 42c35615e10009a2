"""Words of the lanes between processing elements."""

from amaranth.hdl import Shape

from rtl.contract.config import TensorConfig
from rtl.numeric.pe.pe_operand import pe_operand
from rtl.tensor.lanes import OPERAND_BITS, moving_lane, weight_bits, weight_lane

__all__ = ["ArrayLanes"]


class ArrayLanes:
    """Packs moving lanes and weight lanes of an array's configuration; operands are words of pe_operand."""

    def __init__(self, tensor: TensorConfig):
        self.tensor = tensor
        self.operand_bits = Shape.cast(pe_operand(tensor.mx)).width
        self.moving_bits = moving_lane(tensor).size
        self._sparse = self.moving_bits - 1
        self.weight_bits = weight_lane(tensor).size
        self._flags = weight_bits(tensor)

    def moving(self, operand: int, use: bool, swap: bool, dot: bool = False, sparse: bool = False) -> int:
        """One row of a moving beat."""
        return operand | (use | swap << 1 | dot << 2) << self.operand_bits | sparse << self._sparse

    def weight(self, bits: int, raw: bool = False) -> int:
        """One weight."""
        return bits | (raw | 2) << self._flags

    def numbers(self, words: list[int]) -> int:
        """Operand words of numbers of a sparse beat, side by side."""
        return sum(word << (OPERAND_BITS * n) for n, word in enumerate(words))

    def sparse_weight(self, operand: int, slot: int) -> int:
        """Bits of a weight that meets the number in `slot`."""
        return operand | slot << OPERAND_BITS

    def shift(self) -> int:
        """No weight: the shadow weights move south."""
        return 4 << self._flags

    def elements(self, words: list[int], scale: int) -> int:
        """Four element words and the scale of their block as an operand."""
        return sum(word << (10 * k) for k, word in enumerate(words)) | scale << 40
