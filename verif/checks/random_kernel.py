"""Random kernels: every statement of the language, odd shapes and patterns, many hazards.

All bits of the tiles come from HBM and go back there, so that two devices can be compared.
"""

from firmware.program import Program
from rtl.contract.config import Config
from verif.checks.random_elements import RandomElements
from verif.checks.random_indices import RandomIndices
from verif.checks.random_maker import Maker

__all__ = ["random_kernel"]


def random_kernel(
    cfg: Config, seed: int, statements: int = 40, elements: bool = False, indices: bool = False
) -> Program:
    """A program of about `statements` random statements; the same seed gives the same program.

    `elements`: half of them are of the vector and scalar engines, of all kinds. `indices`: half are copies by indices.
    """
    maker = Maker(cfg, seed)
    kinds = [maker.multiply, maker.turn, maker.convert, maker.move, maker.move, maker.add]
    if elements:
        kinds += [RandomElements(maker).statement] * 4
    if indices:
        kinds += [RandomIndices(maker).statement] * len(kinds)
    maker.begin()
    for _ in range(statements):
        kinds[int(maker.rng.integers(len(kinds)))]()
    maker.end()
    return maker.k.program()
