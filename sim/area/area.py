"""The area of a top: its units, synthesised once each, times their numbers; sums, macros, what clocks allow."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from rtl.contract.any_config import AnyConfig
from sim.area.cells import AREA_GE
from sim.area.clocks import LEVEL_PS, MARGIN, REGISTER_PS, levels_in, unit_period_ps
from sim.area.design import Use, elaborated, keep_uses, kept_uses, place_of, uses_of
from sim.area.macros import Macro
from sim.area.result import Mapped
from sim.area.synthesis import kept, shelf, synthesise
from sim.area.units import Unit
from sim.build.emitting import form_options
from sim.build.tops import Top
from sim.build.tops import top as find_top
from sim.progress import Progress
from sim.run.variant import changes
from sim.toolchain import tool_versions

__all__ = ["area_of", "summed_up"]

FORMAT = 1
_DELAY_GE = AREA_GE["DFF"] + AREA_GE["AND2"]  # a delay line is a chain of registers with a reset
_LANE = re.compile(r"_lane(?:\.lane)?(?=\.|$)")
"""Modules around the lanes of rtl/emit/lanes_apart.py say nothing that the name of all of them does not."""


def _ram_bits(macros: Mapping[Macro, int]) -> int:
    return sum(macro.bits * number for macro, number in macros.items())


def _shapes(macros: Mapping[Macro, int]) -> list[dict[str, int]]:
    return [{**asdict(macro), "count": number, "bits": macro.bits * number} for macro, number in sorted(macros.items())]


def _row(use: Use, mapped: Mapped, period: float, level_ps: float) -> dict[str, Any]:
    """A unit of the report: figures of one instance, and of all."""
    area = mapped.area_ge + use.delay_bits * _DELAY_GE + use.clock_gates * AREA_GE["GATE"]
    flip_flops = mapped.flip_flops + use.delay_bits
    ram_bits = _ram_bits(use.macros)
    holds = levels_in(period, level_ps)
    return {
        "name": _LANE.sub("", use.name),
        "count": use.count,
        "branches": dict(use.branches),
        "domains": list(use.domains),
        "area_ge": area,
        "flip_flops": flip_flops,
        "ram_bits": ram_bits,
        "total_area_ge": area * use.count,
        "total_flip_flops": flip_flops * use.count,
        "total_ram_bits": ram_bits * use.count,
        "described_register_bits": use.registers_bits + use.delay_bits,
        "cells": dict(mapped.cells),
        "macros": _shapes(use.macros),
        "levels": mapped.levels,
        "path": [mapped.begin, mapped.end],
        "period_ps": round(period, 1),
        "levels_allowed": holds,
        "too_deep": mapped.levels > holds,
        "digest": use.digest[:12],
    }


def _branches(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Sums by the first step of the way to each instance."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        for name, count in row["branches"].items():
            sums = found.setdefault(name, {"name": name, "area_ge": 0.0, "flip_flops": 0, "ram_bits": 0})
            for key in ("area_ge", "flip_flops", "ram_bits"):
                sums[key] += row[key] * count
    return sorted(found.values(), key=lambda sums: (-sums["area_ge"], sums["name"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Order:
    """What is to be made of which design. `allowed`: levels that the clock of a unit holds."""

    top: Top
    cfg: AnyConfig
    options: Mapping[str, Any]
    jobs: int
    deep: bool
    allowed: Callable[[Use], int]

    def results(self, step: Progress) -> list[tuple[Use, Mapped]]:
        """Uses and results; elaborates only if one of them is not kept."""
        place = place_of(shelf(), self.top, self.cfg, self.options)  # sources as they are before they are imported
        uses = kept_uses(place)
        found = {use.digest: kept(use.digest) for use in uses or ()}
        if uses is None or not self._complete(uses, found):
            step.stage("elaborate")
            units = elaborated(self.top, self.cfg, self.options)
            uses = uses_of(units, self.top.name)
            found = dict(self._made(units, step, deep=False))
            if self.deep:
                slow = {use.digest for use in uses if self._is_slow(use, found[use.digest])}
                self._made([unit for unit in units if unit.digest in slow], step, deep=True)
            keep_uses(place, uses)
        return [(use, self._better(use, found[use.digest])) for use in uses]

    def _is_slow(self, use: Use, mapped: Mapped | None) -> bool:
        return mapped is not None and mapped.levels > self.allowed(use)

    def _complete(self, uses: Sequence[Use], found: Mapping[str, Mapped | None]) -> bool:
        slow = [use for use in uses if self.deep and self._is_slow(use, found[use.digest])]
        return None not in found.values() and all(kept(use.digest, deep=True) for use in slow)

    def _better(self, use: Use, mapped: Mapped | None) -> Mapped:
        """With the levels of the second attempt, if there is one."""
        assert mapped is not None
        again = kept(use.digest, deep=True) if self.deep and self._is_slow(use, mapped) else None
        if again is None or again.levels >= mapped.levels:
            return mapped
        return replace(mapped, levels=again.levels, begin=again.begin, end=again.end)

    def _made(self, units: Sequence[Unit], step: Progress, *, deep: bool) -> dict[str, Mapped]:
        step.stage("fewer levels" if deep else "synthesise")
        done = 0

        def came(name: str) -> None:
            nonlocal done
            done += 1
            step.note(f"{done} of {len(units)} units, {name}")

        return synthesise(units, jobs=self.jobs, deep=deep, came=came, tick=step.tick)


def summed_up(
    found: Sequence[tuple[Use, Mapped]], period_of: Callable[[Use], float], level_ps: float = LEVEL_PS
) -> dict[str, Any]:
    """`units`, largest first, `branches`, `macros` and `total` of units and what came of them."""
    rows = [_row(use, mapped, period_of(use), level_ps) for use, mapped in found]
    rows.sort(key=lambda row: (-row["total_area_ge"], -row["total_ram_bits"], row["name"]))
    macros = Counter[Macro]()
    for use, _ in found:
        for macro, number in use.macros.items():
            macros[macro] += number * use.count
    total = {key: sum(row[f"total_{key}"] for row in rows) for key in ("area_ge", "flip_flops", "ram_bits")}
    total["described_register_bits"] = sum(row["described_register_bits"] * row["count"] for row in rows)
    total["too_deep"] = sum(row["too_deep"] for row in rows)
    return {"total": total, "units": rows, "branches": _branches(rows), "macros": _shapes(macros)}


def area_of(
    top: str,
    cfg: AnyConfig,
    *,
    options: Mapping[str, Any] | None = None,
    jobs: int = 1,
    deep: bool = False,
    level_ps: float = LEVEL_PS,
    step: Progress | None = None,
) -> dict[str, Any]:
    """The report of a top, as plain values: `units`, largest first, `branches`, `macros`, `total`; docs/area.md has
    each key. All the way down: what has a form is structural. `deep`: more time for fewer levels, of units that are too
    deep for their clock. Errors: PlexusError, one sentence."""
    chosen = find_top(top)
    made = {**form_options(top, None), **(options or {})}

    def period(use: Use) -> float:
        return unit_period_ps(cfg, chosen, use.domains)

    def allowed(use: Use) -> int:
        return levels_in(period(use), level_ps)

    order = _Order(top=chosen, cfg=cfg, options=made, jobs=jobs, deep=deep, allowed=allowed)
    report = summed_up(order.results(step or Progress(f"area {top} {cfg.name}")), period, level_ps)
    base, changed = changes(cfg)
    return {
        "format": FORMAT,
        "top": top,
        "options": dict(made),
        "deep": deep,
        "config": cfg.name,
        "config_base": base,
        "config_changes": changed,
        "config_hash": cfg.hash,
        **report,
        "cells_ge": dict(AREA_GE),
        "level_ps": level_ps,
        "register_ps": REGISTER_PS,
        "margin": MARGIN,
        "tool_versions": tool_versions(),
    }
