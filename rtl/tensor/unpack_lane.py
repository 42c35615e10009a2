"""What comes through a row of an array port, as the processing elements take it."""

from amaranth.hdl import Module, Mux, Shape, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.contract.config import TensorConfig
from rtl.contract.kinds import Kind
from rtl.numeric.pe.element import ELEMENT, ELEMENTS
from rtl.numeric.pe.halves import Halves
from rtl.numeric.pe.operand import OPERAND
from rtl.numeric.pe.pe_operand import pe_operand
from rtl.numeric.pe.unpack import Unpack
from rtl.numeric.pe.unpack_element import UnpackElement
from rtl.tensor.lanes import OPERAND_BITS, SLOT_BITS, weight_bits

__all__ = ["CODE_BITS", "UnpackLane"]

CODE_BITS = 32
"""Bits of a row that any kind but SPARSE uses."""

ONE_SCALE = 127  # 2^0 as E8M0


class UnpackLane(wiring.Component):
    """32 bits of a row, its scale and its mode to pe_operand, or with RAW the same 32 bits. Combinational.

    `lane` has weight_bits bits, pe_operand lowest; what a kind leaves is 0. With SPARSE `slot` is above the operand.
    """

    def __init__(self, tensor: TensorConfig):
        self.tensor = tensor
        super().__init__(
            {
                "bits": In(CODE_BITS),
                "dtype": In(4),
                "kind": In(3),
                "scale": In(8),
                "slot": In(SLOT_BITS),
                "lane": Out(weight_bits(tensor)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.unpack = unpack = Unpack()
        m.submodules.halves = halves = Halves()
        m.d.comb += [
            unpack.bits.eq(self.bits),
            unpack.dtype.eq(self.dtype),
            halves.bits.eq(self.bits),
            halves.low.eq(self.kind == Kind.LOW),
        ]
        out = Signal(pe_operand(self.tensor.mx))
        number = Signal(OPERAND)
        is_half = (self.kind == Kind.HIGH) | (self.kind == Kind.LOW)
        m.d.comb += [
            number.eq(Mux(is_half, halves.operand, unpack.operand)),
            out.operand.eq(number),
            self.lane.eq(out),
        ]
        if self.tensor.mx:
            elements = [self._element(m, k) for k in range(ELEMENTS)]
            with m.If((self.kind == Kind.QUAD) | (self.kind == Kind.QUAD_E4M3)):
                for k in range(ELEMENTS):
                    m.d.comb += Value.cast(out.elements[k]).eq(elements[k])
                m.d.comb += out.scale.eq(self.scale)
            with m.Elif(self.kind == Kind.PAIR):
                m.d.comb += Value.cast(out.elements).eq(0)
                for k in range(2):
                    m.d.comb += Value.cast(out.elements[k]).eq(elements[k])
                m.d.comb += out.scale.eq(ONE_SCALE)
        if self.tensor.sparsity:
            with m.If(self.kind == Kind.SPARSE):
                m.d.comb += self.lane[OPERAND_BITS : OPERAND_BITS + SLOT_BITS].eq(self.slot)
        with m.If(self.kind == Kind.RAW):
            m.d.comb += self.lane.eq(self.bits)
        return m

    def _element(self, m: Module, k: int) -> Value:
        m.submodules[f"element_{k}"] = unpack = UnpackElement()
        element = Signal(Shape.cast(ELEMENT).width, name=f"element{k}")
        m.d.comb += [
            unpack.bits.eq(self.bits.word_select(k, 8)),
            unpack.dtype.eq(self.dtype),
            element.eq(Value.cast(unpack.element)),
        ]
        return element
