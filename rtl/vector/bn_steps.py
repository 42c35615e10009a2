"""What a lane of BN_STATS, BN_AGGR and RECIPROCAL can do in a cycle."""

from amaranth.lib import data, enum

__all__ = ["BN_STEP", "Divide", "Give", "Multiply", "PARTS", "Shift", "Spread", "Total"]

PARTS = 8


class Shift(enum.Enum, shape=3):
    """What the first adder does. `origin` is element 0 (statistics) or the running mean (merging)."""

    NONE = 0
    FIRST = 1  # origin = x, apart = x - x
    APART = 2  # apart = x - origin
    MEAN = 3  # apart = origin + product
    BETWEEN = 4  # apart = mean that came - origin
    MOVE = 5  # origin = origin + product


class Total(enum.Enum, shape=2):
    """What the second adder does, on eight `totals`. Merging: 0 is the count, 1 the count with what came."""

    NONE = 0
    ADD = 1  # totals[to] += apart
    JOIN = 2  # totals[to] += totals[other]
    COUNT = 3  # totals[1] = totals[0] + count that came


class Spread(enum.Enum, shape=3):
    """What the third adder does, on eight `spreads`. Merging: 0 is count times variance."""

    NONE = 0
    ADD = 1  # spreads[to] += square
    JOIN = 2  # spreads[to] += spreads[other]
    LESS = 3  # spreads[to] -= product
    CAME = 4  # spreads[0] += spread that came
    BETWEEN = 5  # spreads[0] += product


class Multiply(enum.Enum, shape=4):
    """What the multiplier does; `share` and the variance are 0 if totals[1] is."""

    NONE = 0
    SQUARE = 1  # square = apart * apart
    MEAN = 2  # product = totals[to] * inverse
    CORRECT = 3  # product = totals[to] * product
    SHARE = 4  # share = count that came * inverse
    MOVE = 5  # product = apart * share
    MASS = 6  # product = totals[0] * share
    BETWEEN = 7  # product = square * product
    VARIANCE = 8  # product = spreads[0] * inverse


class Divide(enum.Enum, shape=2):
    """What the reciprocal begins with."""

    NONE = 0
    COUNT = 1  # the input `count`
    TOTAL = 2  # totals[1]
    CAME = 3  # the count that came


class Give(enum.Enum, shape=3):
    """What stands at `out`."""

    NOTHING = 0  # 0
    COUNT = 1  # the input `count`
    APART = 2
    SPREAD = 3  # spreads[to], 0 if it is below
    ORIGIN = 4
    PRODUCT = 5
    INVERSE = 6


BN_STEP = data.StructLayout(
    {
        "clear": 1,
        "store": 3,  # x is the count, the mean, the spread that comes
        "shift": Shift,
        "total": Total,
        "spread": Spread,
        "multiply": Multiply,
        "divide": Divide,
        "advance": 1,  # the count that came becomes the one that `share` is made of
        "settle": 1,  # totals[0] = totals[1]
        "give": Give,
        "to": 3,
        "square_to": 3,  # of Spread.ADD, which runs a cycle behind
        "other": 3,
    }
)
"""What all lanes do in a cycle."""
