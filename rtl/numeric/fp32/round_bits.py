"""Random bits for stochastic rounding, as a function of where a result belongs and of nothing else."""

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.isa import Queue

__all__ = ["BITS", "RoundBits", "of_lane"]

BITS = 32


def _named(m: Module, value: Value) -> Value:
    """The value as a signal: Amaranth writes out an expression wherever it is used, here 2^8 times a lane."""
    signal = Signal(BITS, name="mixed")
    m.d.comb += signal.eq(value)
    return signal


def _mixed(m: Module, x: Value) -> Value:
    """A step of the hash: x += x << 10; x ^= x >> 6."""
    x = _named(m, x + (x << 10))
    return _named(m, x ^ (x >> 6))


def of_lane(m: Module, word: Value, lane: int) -> Value:
    """The 16 random bits of partition `lane` of a row whose word is `word`."""
    x = _named(m, word + lane)
    for _ in range(2):  # once leaves neighbouring partitions alike (correlation 0.24)
        x = _mixed(m, x)
        x = _named(m, x + (x << 3))
        x = _named(m, x ^ (x >> 11))
        x = _named(m, x + (x << 15))
    return x[16:]


class RoundBits(wiring.Component):
    """`word` of the elements `element` of all partitions: hash of seed, queue and ticket, element. Combinational.

    Bob Jenkins' one-at-a-time hash (Dr. Dobb's Journal, September 1997) on words instead of bytes: h = seed; of
    (queue << 16 | ticket), then of element: h += it, h += h << 10, h ^= h >> 6. `of_lane` goes on with the partition
    and ends the hash, twice.
    """

    seed: In(BITS)
    ticket: In(16)
    element: In(16)
    word: Out(BITS)

    def __init__(self):
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        first = Signal(BITS)
        place = Cat(
            self.ticket & ~fault("the ticket is not used for random bits").replicate(16), Const(Queue.TENSOR, 16)
        )
        seed = self.seed & ~fault("the seed of random bits is not used").replicate(BITS)
        element = self.element & ~fault("every element has the random bits of the first").replicate(16)
        m.d.comb += [
            first.eq(_mixed(m, _named(m, seed + place))),
            self.word.eq(_mixed(m, _named(m, first + element))),
        ]
        return m
