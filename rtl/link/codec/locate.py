"""Locate: which byte of a FEC group is wrong, and what its repair adds to the syndromes of the CRC."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.link import CRC_BYTES, CRC_FIRST_ROOT, CRC_ORDER, FEC_AT, FEC_GROUPS, FEC_SPAN
from rtl.link.codec.galois import CRC_FIELD, FEC_FIELD, ORDER, crc_exponent

__all__ = ["Locate"]

_LOG_BITS = 7  # distances 1 to 84


class Locate(wiring.Component):
    """From check and parity syndrome of group `group` to the byte and its error.

    One cycle after the syndromes: `hit` (a byte is located), `byte` (else 0), `error`, `bad` (no single
    byte explains the syndromes), and `sums`: what the repair adds to the CRC's 8 syndromes; 0 if that byte is
    not in its codeword. While the syndromes stand, so do the results.
    """

    def __init__(self, group: int, order: str = CRC_ORDER):
        self.group = group
        self.order = order
        super().__init__(
            {
                "check": In(8),
                "parity": In(8),
                "hit": Out(1),
                "bad": Out(1),
                "byte": Out(8),
                "error": Out(8),
                "sums": Out(8 * CRC_BYTES),
            }
        )

    def _table(self, m: Module, name: str, width: int, rows: list[int], at: Value) -> Value:
        """What a table says at `at`."""
        m.submodules[name] = table = memory.Memory(shape=unsigned(width), depth=1 << len(at), init=rows)
        port = table.read_port(domain="comb")
        m.d.comb += port.addr.eq(at)
        return port.data

    def _byte_at(self, distance: int) -> int:
        """The byte of a flit at that distance from the group's check byte; may lie outside it."""
        return FEC_GROUPS * (FEC_SPAN - distance) + self.group

    def _weights(self, distance: int) -> int:
        """log alpha^(j * exponent of the byte), for each root alpha^j of the CRC."""
        byte = self._byte_at(distance)
        if not 0 <= byte < FEC_AT:
            return 0
        roots = range(CRC_FIRST_ROOT, CRC_FIRST_ROOT + CRC_BYTES)
        return sum(j * crc_exponent(byte, self.order) % ORDER << (8 * n) for n, j in enumerate(roots))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        check, parity = self.check, self.parity
        nearest = FEC_SPAN - (FEC_AT - 1 - self.group) // FEC_GROUPS  # distance of the group's last byte

        # First cycle: the distance of the wrong byte from the check byte, in places.
        logs = [self._table(m, f"log_{name}", 8, FEC_FIELD.log, at) for name, at in (("c", check), ("p", parity))]
        away = Signal(9)
        distance = Signal(8)
        inside = Signal()
        m.d.comb += [
            away.eq(logs[0] - logs[1]),
            distance.eq(Mux(away[8], away + ORDER, away)),
            inside.eq(
                (distance >= Mux(fault("the pad of a short group is repaired"), 1, nearest)) & (distance <= FEC_SPAN)
            ),
        ]
        check_at = FEC_AT + (self.group - FEC_AT) % FEC_GROUPS
        in_data = Signal()
        log_error = Signal(8)
        place = Signal(_LOG_BITS)
        m.d.sync += [
            in_data.eq(0),
            self.hit.eq(0),
            self.bad.eq(0),
            self.byte.eq(0),
            self.error.eq(parity),
            place.eq(distance),
            log_error.eq(self._table(m, "log_error", 8, CRC_FIELD.log, parity)),
        ]
        with m.If((check != 0) & (parity != 0)):
            m.d.sync += [
                in_data.eq(inside),
                self.hit.eq(inside),
                self.bad.eq(~inside),
                self.byte.eq(Mux(inside, self._byte_at(0) - FEC_GROUPS * distance, 0)),
            ]
        with m.Elif(check != 0):
            m.d.sync += [
                self.hit.eq(~fault("a wrong check byte cannot be repaired")),
                self.bad.eq(fault("a wrong check byte cannot be repaired")),
                self.error.eq(check),
                self.byte.eq(Mux(fault("a wrong check byte cannot be repaired"), 0, check_at)),
            ]
        with m.Elif(parity != 0):
            m.d.sync += [self.hit.eq(1), self.byte.eq(check_at + FEC_GROUPS)]

        # Second cycle: error * alpha^(j * exponent), by logarithms.
        weights = self._table(m, "weights", 8 * CRC_BYTES, [self._weights(n) for n in range(1 << _LOG_BITS)], place)
        m.submodules.power = powers = memory.Memory(
            shape=unsigned(8), depth=512, init=[CRC_FIELD.power(n) for n in range(512)]
        )
        products = []
        for n in range(CRC_BYTES):
            port = powers.read_port(domain="comb")
            m.d.comb += port.addr.eq(weights.word_select(n, 8) + log_error)
            products.append(port.data)
        m.d.comb += self.sums.eq(Mux(in_data, Cat(*products), 0))
        return m
