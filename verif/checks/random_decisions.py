"""Random kernels with loops and blocks that registers decide, and the same ones whose numbers the kernel knows."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from firmware.decisions.numbers import greatest, least
from firmware.program import Program
from rtl.contract.config import Config
from verif.checks.random_elements import RandomElements
from verif.checks.random_maker import Maker

__all__ = ["MOST", "REGISTERS", "deciding_kernel"]

MOST, REGISTERS = 3, 3
_DEPTH = 2


_COUNTS: tuple[Callable[[Any, Any], Any], ...] = (
    lambda a, b: a,
    lambda a, b: MOST - a,
    lambda a, b: greatest(a - b, 0),
    lambda a, b: least(a + b, 2),
    lambda a, b: a // 2,
    lambda a, b: -(-a // 2),
    lambda a, b: a % 2 * b // 2,
)
_CONDITIONS: tuple[Callable[[Any, Any, int], Any], ...] = (
    lambda a, b, c: a < c,
    lambda a, b, c: a <= c,
    lambda a, b, c: a > c,
    lambda a, b, c: a >= c,
    lambda a, b, c: a == c,
    lambda a, b, c: a != b,
    lambda a, b, c: a < b,
    lambda a, b, c: a * 2 >= b + c,
    lambda a, b, c: a % 2 == 0,
)


def deciding_kernel(cfg: Config, seed: int, values: Sequence[int], *, known: bool, statements: int = 14) -> Program:
    """A program of about so many random statements, many in blocks and loops that REGISTERS numbers from 0 to MOST
    decide. They are `values`; `known`: to the kernel. The same seed gives the same statements, whatever the numbers."""
    maker = Maker(cfg, seed)
    k, rng = maker.k, maker.rng
    maker.directly = False
    kinds = [maker.multiply, maker.turn, maker.convert, maker.move, maker.move, maker.add]
    elements = RandomElements(maker)
    kinds += [elements.statement] * 3
    given = [k.hbm(f"number {n}", (1,), "int32", np.array([value], np.uint32)) for n, value in enumerate(values)]
    maker.begin()
    numbers: list[Any] = list(values) if known else [k.register(view, MOST) for view in given]

    def some(count: int, depth: int) -> None:
        before = maker.directly
        maker.directly, elements.table = depth > 0, ""
        for _ in range(count):
            kind = rng.random()
            a, b = (numbers[int(n)] for n in rng.integers(REGISTERS, size=2))
            if depth == _DEPTH or kind > 0.6:
                kinds[int(rng.integers(len(kinds)))]()
            elif kind < 0.3:
                with k.loop(_COUNTS[int(rng.integers(len(_COUNTS)))](a, b)):
                    some(int(rng.integers(1, 3)), depth + 1)
            else:
                with k.if_(_CONDITIONS[int(rng.integers(len(_CONDITIONS)))](a, b, int(rng.integers(4)))):
                    some(int(rng.integers(1, 4)), depth + 1)
        maker.directly, elements.table = before, ""  # which table is loaded depends on the turn, and on the run

    some(statements, 0)
    maker.end()
    return k.program()
