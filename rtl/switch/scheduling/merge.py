"""The heavier of two matchings, component by component."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault

__all__ = ["Merge"]


class Merge(wiring.Component):
    """Of an old and a new matching, in each connected component of both, the one that weighs more; else the old.

    By input i: old (its pair is in the old matching), old_weight; new, new_output, new_weight. By output o: owned
    (its pair is in the old matching), owner (the input of that pair). Out: keep, take: inputs whose old, whose new
    pair stands.
    A component is a path or a ring of inputs, each followed by the input that has, in the old matching, the output
    that the new one gives it. log2(count) times everyone jumps to where its follower points: then an input knows
    the last one of its path, or the lowest number in its ring; that names the component. Timing: combinational.
    """

    def __init__(self, count: int, most_weight: int):
        self.count = count
        super().__init__(
            {
                "old": In(count),
                "old_weight": In(data.ArrayLayout(range(most_weight + 1), count)),
                "owned": In(count),
                "owner": In(data.ArrayLayout(range(count), count)),
                "new": In(count),
                "new_output": In(data.ArrayLayout(range(count), count)),
                "new_weight": In(data.ArrayLayout(range(most_weight + 1), count)),
                "keep": Out(count),
                "take": Out(count),
            }
        )
        self.difference = signed(most_weight.bit_length() + 2)
        self.total = signed((most_weight * count).bit_length() + 1)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        n = self.count
        bits = (n - 1).bit_length()
        owners = Value.cast(self.owner)
        follows = Signal(n)  # somebody follows
        to: list[Value] = []
        lowest: list[Value] = []
        for i in range(n):
            follower = Signal(range(n), name=f"follower_{i}")
            m.d.comb += [
                follows[i].eq(self.new[i] & self.owned.bit_select(self.new_output[i], 1)),
                follower.eq(Mux(follows[i], owners.word_select(self.new_output[i], bits), i)),
            ]
            to.append(follower)
            lowest.append(Const(i, bits))
        for k in range(bits):
            points = Signal(n * bits, name=f"points_{k}")
            lows = Signal(n * bits, name=f"lows_{k}")
            m.d.comb += [points.eq(Cat(*to)), lows.eq(Cat(*lowest))]
            to_next, lowest_next = [], []
            for i in range(n):
                there = Signal(range(n), name=f"low_there_{k}_{i}")
                point, low = Signal(range(n), name=f"point_{k}_{i}"), Signal(range(n), name=f"low_{k}_{i}")
                m.d.comb += [
                    there.eq(lows.word_select(to[i], bits)),
                    point.eq(points.word_select(to[i], bits)),
                    low.eq(Mux(there < lowest[i], there, lowest[i])),
                ]
                to_next.append(point)
                lowest_next.append(low)
            to, lowest = to_next, lowest_next

        member: list[Signal] = []  # one-hot name of the component
        weighs: list[Signal] = []
        for i in range(n):
            name = Signal(range(n), name=f"name_{i}")
            one = Signal(n, name=f"member_{i}")
            weight = Signal(self.difference, name=f"weight_{i}")
            ring = follows.bit_select(to[i], 1) & ~fault("a ring is taken for its single inputs")
            m.d.comb += [
                name.eq(Mux(ring, lowest[i], to[i])),
                one.eq(Const(1, n) << name),
                weight.eq(Mux(self.old[i], self.old_weight[i], 0) - Mux(self.new[i], self.new_weight[i], 0)),
            ]
            member.append(one)
            weighs.append(weight)
        lighter = Signal(n)  # components whose old matching weighs less
        for c in range(n):
            total = Signal(self.total, name=f"total_{c}")
            m.d.comb += [
                total.eq(_sum([Mux(member[i][c], weighs[i], 0) for i in range(n)])),
                lighter[c].eq((total < 0) ^ fault("the lighter matching stands")),
            ]
        for i in range(n):
            m.d.comb += [
                self.keep[i].eq(self.old[i] & ~(member[i] & lighter).any()),
                self.take[i].eq(self.new[i] & (member[i] & lighter).any()),
            ]
        return m


def _sum(values: list[Value]) -> Value:
    """A balanced tree, so that widths grow by one bit per level."""
    while len(values) > 1:
        values = [a + b for a, b in zip(values[::2], values[1::2])] + values[len(values) // 2 * 2 :]
    return values[0]
