"""Flip-flops of a core by the clock that they hang on, from its hierarchy; nothing is synthesised."""

from collections import Counter
from collections.abc import Iterable

from rtl.contract.config import Config
from sim.area.design import Use, elaborated, keep_uses, kept_uses, place_of, uses_of
from sim.area.synthesis import shelf
from sim.build.emitting import form_options
from sim.build.tops import top
from sim.progress import Progress

__all__ = ["CLOCKS", "registers_of"]

CLOCKS = ("root", "tensor", "vector", "scalar", "dma", "memory")
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
    """By clock: bits of registers as they are described, `delay_bits` of them in delay lines. Elaborates the core once
    for its sources and configuration, as `plexus area` does."""
    chosen, options = top("core"), form_options("core", None)
    place = place_of(shelf(), chosen, cfg, options)
    uses = kept_uses(place)
    if uses is None:
        step.stage("elaborate the core")
        uses = uses_of(elaborated(chosen, cfg, options), chosen.name)
        keep_uses(place, uses)
    return _sums(uses)
