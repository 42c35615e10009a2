"""Flip-flops of a core by the clock that they hang on, from its hierarchy."""

from collections import Counter
from collections.abc import Iterable

from rtl.contract.config import Config
from sim.area.design import Use
from sim.energy.design import design_of
from sim.progress import Progress

__all__ = ["CLOCKS", "registers_of"]

CLOCKS = ("root", "tensor", "vector", "scalar", "gpsimd", "dma", "memory")
"""Root: always; memory: SBUF and PSUM, with any engine. The adders of PSUM are the tensor engine's."""


def _clock(domains: Iterable[str]) -> str:
    """Of a unit of several domains the one that runs least is not known: the first engine's."""
    for domain in sorted(domains):
        name = domain.partition("_")[0]
        if name.startswith("add"):
            return "tensor"
        if name in CLOCKS and name != "root":
            return name
    return "root"


def _sums(uses: Iterable[Use]) -> dict[str, dict[str, int]]:
    bits, delays = Counter[str](), Counter[str]()
    for use in uses:
        clock = _clock(use.domains)
        bits[clock] += (use.registers_bits + use.delay_bits) * use.count
        delays[clock] += use.delay_bits * use.count
    return {clock: {"flip_flops": bits[clock], "delay_bits": delays[clock]} for clock in CLOCKS}


def registers_of(cfg: Config, step: Progress) -> dict[str, dict[str, int]]:
    """By clock: bits of registers as they are described, `delay_bits` of them in delay lines."""
    return _sums(design_of("core", cfg, step))
