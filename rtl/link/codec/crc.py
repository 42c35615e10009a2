"""CRC of a flit: eight bytes of sums, a beat at a time."""

from collections.abc import Callable
from functools import partial

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.xor_map import XorMap
from rtl.contract.link import CRC_BYTES, CRC_FIRST_ROOT, CRC_ORDER, FEC_AT, FLIT_BYTES
from rtl.contract.link_config import LinkConfig
from rtl.link.codec.galois import CRC_FIELD, byte_columns, crc_coefficient, power_of_x, rows_of

__all__ = ["Crc"]

_PAST = FLIT_BYTES - FEC_AT  # the last byte of a flit stands that far behind the codeword's last


def _remainder(exponent: int, value: int, order: str) -> int:
    """value * x^exponent mod g, as the bytes of a CRC."""
    coefficients = power_of_x(exponent, value)
    return sum(coefficients[crc_coefficient(place, order)] << (8 * place) for place in range(CRC_BYTES))


def _syndromes(exponent: int, value: int) -> int:
    """value * alpha^(j * exponent), byte j - FIRST_ROOT for each root alpha^j."""
    roots = range(CRC_FIRST_ROOT, CRC_FIRST_ROOT + CRC_BYTES)
    return sum(CRC_FIELD.mul(value, CRC_FIELD.power(j * exponent)) << (8 * n) for n, j in enumerate(roots))


class Crc(wiring.Component):
    """Sums over the bytes of a flit, its last beat included, in the cycle of that beat.

    `check` False (sender): `sums` are the 8 CRC bytes in `order`, the first in the low bits; True (receiver): the 8
    syndromes, all 0 if bytes 0 to 249 are a codeword (with the CRC in the order of high_first).
    Bytes that do not belong to the sum are 0 in `data`: from 242 on for a sender, from 250 on for a
    receiver. `first`: of a flit. Timing: `sums` combinational; with `enable` the beat is taken.
    """

    def __init__(self, cfg: LinkConfig, *, check: bool, order: str = CRC_ORDER):
        self.cfg = cfg
        self.order = order
        self.check = check
        bits = 8 * cfg.beat_bytes
        super().__init__(
            {"enable": In(1), "first": In(1), "data": In(bits), "sums": Out(8 * CRC_BYTES)},
        )

    def _columns(self) -> list[int]:
        """What each bit of the beat, and then of the sums so far, adds to the sums."""
        image: Callable[[int, int], int] = _syndromes if self.check else partial(_remainder, order=self.order)
        size = self.cfg.beat_bytes
        columns: list[int] = []
        for n in range(size):
            columns += byte_columns(lambda value, n=n: image(size - 1 - _PAST - n, value))
        for place in range(CRC_BYTES):  # the sums move up by a beat
            if self.check:
                by = CRC_FIELD.power((CRC_FIRST_ROOT + place) * size)
                columns += byte_columns(lambda value, by=by, at=8 * place: CRC_FIELD.mul(value, by) << at)
            else:
                power = size + crc_coefficient(place, self.order)
                columns += byte_columns(lambda value, power=power: image(power, value))
        return columns

    def elaborate(self, platform: object) -> Module:
        m = Module()
        width, out = len(self.data), len(self.sums)
        m.submodules.map = sums = XorMap(width + out, rows_of(out, self._columns()))
        before = Signal(out)
        m.d.comb += [
            sums.i.eq(Cat(self.data, Mux(self.first, 0, before))),
            self.sums.eq(sums.o),
        ]
        with m.If(self.enable):
            m.d.sync += before.eq(sums.o)
        return m
