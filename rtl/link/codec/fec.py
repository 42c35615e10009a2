"""FEC of a flit: a check and a parity byte for each of three interleaved groups, a beat at a time."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.xor_map import XorMap
from rtl.contract.link import FEC_GROUPS, FEC_POLYNOMIAL
from rtl.contract.link_config import LinkConfig
from rtl.link.codec.galois import FEC_FIELD, byte_columns, rows_of

__all__ = ["Fec"]

_HALF = FEC_POLYNOMIAL >> 1  # of 1: alpha^-1


class Fec(wiring.Component):
    """Check and parity bytes over bytes 0 to 249 of a flit, its last beat included, in the cycle of that beat.

    `check`, `parity`: a byte a group, those of groups 1, 2, 0: bytes 250 to 252 and 253 to 255 of a flit.
    Bytes that do not belong to the sum (from 250 on; of a sender also the CRC) are 0 in `data`. `first`:
    of a flit. Timing: outputs combinational; with `enable` the beat is taken.

    A beat is 64 or 128 bytes, so the groups move by one place or two from beat to beat. The sums are
    therefore kept by the place that their group has in the next beat, n mod 3, and the same network serves
    every beat: a byte weighs alpha^((distance to that place) / 3 - 1).
    """

    def __init__(self, cfg: LinkConfig):
        self.cfg = cfg
        super().__init__(
            {
                "enable": In(1),
                "first": In(1),
                "data": In(8 * cfg.beat_bytes),
                "check": Out(8 * FEC_GROUPS),
                "parity": Out(8 * FEC_GROUPS),
            }
        )

    def _columns(self) -> list[int]:
        """What each bit of the beat, and then of the sums so far, adds to the checks."""
        size = self.cfg.beat_bytes
        columns: list[int] = []

        def add(n: int, power: int) -> None:
            place = (n - size) % FEC_GROUPS
            by = FEC_FIELD.power(power + (size + place - n) // FEC_GROUPS)
            columns.extend(byte_columns(lambda value: FEC_FIELD.mul(value, by) << (8 * place)))

        for n in range(size):
            add(n, -1)
        for place in range(FEC_GROUPS):
            add(place, 0)
        return columns

    def _folded(self, value: Value) -> Value:
        """The sum of all bytes with the same n mod 3, 3 bytes."""
        while (size := len(value)) > 8 * FEC_GROUPS:
            half = 8 * FEC_GROUPS * (1 << (-(-size // (8 * FEC_GROUPS)) - 1).bit_length() - 1)
            value = value[:half] ^ value[half:]
        return value

    def elaborate(self, platform: object) -> Module:
        m = Module()
        size, out = self.cfg.beat_bytes, 8 * FEC_GROUPS
        m.submodules.map = checks = XorMap(8 * size + out, rows_of(out, self._columns()))
        check, parity = Signal(out), Signal(out)  # of the beats before
        parities = Signal(out)
        low = self._folded(self.data) ^ Mux(self.first, 0, parity)
        turn = 8 * (-size % FEC_GROUPS)
        m.d.comb += [
            checks.i.eq(Cat(self.data, Mux(self.first, 0, check))),
            parities.eq(low.rotate_left(turn)),
        ]
        with m.If(self.enable):
            m.d.sync += [check.eq(checks.o), parity.eq(parities)]
        # At the end the groups are 1, 2, 0, and that of group 0 is a place further: it is divided by alpha.
        last = checks.o[-8:]
        m.d.comb += [
            self.check.eq(Cat(checks.o[:-8], last[1:] ^ Mux(last[0], Const(_HALF, 8), 0))),
            self.parity.eq(parities),
        ]
        return m
