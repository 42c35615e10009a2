"""A word that a sequencer holds, and to whose fields it adds registers."""

from amaranth.hdl import Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.sequence import FILL, FILL_AT, FILLED, FILLS, WRAPPING, filled_place

__all__ = ["HeldWord"]

_PLACES = [(*filled_place(name, from_bit), name in WRAPPING) for name, from_bit in FILLED[1:]]
"""Of each code: first bit, bits, whether it is signed, whether a sum wraps."""

_SUM_BITS = max(bits for _, bits, _, _ in _PLACES) + 2


class HeldWord(wiring.Component):
    """`load` takes `loaded`; `fill` adds `value` to the field of `code`; `wipe` puts 0 where the word named registers.

    Timing: the word changes at the end of the cycle. `fits`: the sum lies within the field, or it is one of WRAPPING;
    also 0 for a code that is none. Code 0 leaves the word and fits.
    """

    def __init__(self):
        super().__init__(
            {
                "load": In(1),
                "loaded": In(1024),
                "fill": In(1),
                "code": In(FILL.fields[0].width),
                "value": In(signed(32)),
                "wipe": In(1),
                "word": Out(1024),
                "fits": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        word = Signal(1024)
        old, total = Signal(signed(_SUM_BITS)), Signal(signed(_SUM_BITS))
        m.d.comb += [
            self.word.eq(word),
            total.eq(old + Mux(fault("the value of a register is not signed"), self.value.as_unsigned(), self.value)),
        ]
        with m.Switch(self.code):
            with m.Case(0):
                m.d.comb += self.fits.eq(1)
            for code, (at, width, is_signed, wraps) in enumerate(_PLACES, 1):
                part = word[at : at + width]
                with m.Case(code):
                    m.d.comb += old.eq(part.as_signed() if is_signed else part)
                    m.d.comb += self.fits.eq(1 if wraps else self._fits(total, width, is_signed))
        with m.If(self.load):
            m.d.sync += word.eq(self.loaded)
        with m.Elif(self.wipe):
            m.d.sync += word[FILL_AT : FILL_AT + FILLS * FILL.width].eq(0)
        with m.Elif(self.fill):
            with m.Switch(self.code):
                for code, (at, width, _, _) in enumerate(_PLACES, 1):
                    with m.Case(code):
                        m.d.sync += word[at : at + width].eq(total)
        return m

    @staticmethod
    def _fits(total: Value, width: int, is_signed: bool) -> Value:
        sign = total[width - 1 :] if is_signed else total[width:]
        return (sign == 0) | (sign.all() if is_signed else 0) | fault("a sum that does not fit is cut")
