"""What has a name, and what a workload or a unit takes: the texts of `plexus list`."""

from collections.abc import Mapping
from typing import Any

from firmware.own_makers import OWN_ARRAYS
from firmware.workload import Param
from sim.build.tops import TOPS
from sim.config_listing import config_lines, find_config
from sim.run.units import UNITS, Unit
from sim.systems.configurations import configurations
from sim.systems.registry import offers

__all__ = ["details", "names_by_kind"]


def names_by_kind() -> dict[str, list[tuple[str, str, str]]]:
    """Everything that has a name: (name, what it is, how it is used)."""
    return {
        "workloads": [
            (name, offer.doc, " ".join(_with_default(key, p.default) for key, p in offer.params.items()))
            for name, offer in offers().items()
        ],
        "configs": [
            (name, one.about(cfg), cfg.hash)
            for one in configurations()
            if one.about is not None
            for name, cfg in one.named.items()
        ],
        "units": [(name, unit.doc, unit.usage()) for name, unit in UNITS.items()],
        "tops": [(name, t.doc, " ".join(t.options)) for name, t in sorted(TOPS.items())],
    }


def _default(value: Any) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= 16 else '"..."'


def _with_default(name: str, default: Any) -> str:
    return name if default is None else f"{name}={_default(default)}"


def _param_lines(params: Mapping[str, Param]) -> list[tuple[str, str]]:
    """Parameters of a workload: with their default, and what they mean."""
    lines = []
    for key, p in params.items():
        kinds = {int: "whole number", float: "number", bool: "true or false", str: "text"}
        kind = ", ".join(p.choices) or kinds[p.type]
        limits = "" if p.minimum is None else f" from {p.minimum}" + (f" to {p.maximum}" if p.maximum else "")
        lines.append((_with_default(key, p.default), f"{p.doc} ({kind}{limits})"))
    return lines


def _unit_lines(unit: Unit) -> list[tuple[str, str]]:
    """Arrays and texts of a unit, and what they are."""

    def kind(array: str) -> str:
        text = {**unit.inputs, **unit.outputs}[array]
        bits, _, of = text.partition("bits:")
        return f"codes in {of}'s format, uint8, uint16 or uint32" if of else bits

    def optional(array: str) -> str:
        return ", may be left out" if array in unit.defaults else ""

    rows = ", a row for each result" if unit.rows else ""
    lines = [(array, f"in: {kind(array)}{rows}{optional(array)}") for array in unit.inputs]
    lines += [(text, f"in: text, one of {', '.join(words)}") for text, words in unit.strings.items()]
    return lines + [(array, f"out: {kind(array)}") for array in unit.outputs]


def details(name: str) -> tuple[str, list[tuple[str, str]]] | None:
    """Of a workload its parameters, of a unit its arrays, of a configuration its fields: a title and (name, meaning);
    None if it is neither."""
    if offer := offers().get(name):
        own = [("--in IN.npz", OWN_ARRAYS[name].usage())] if name in OWN_ARRAYS else []
        return f"{name}: {offer.doc}", _param_lines(offer.params) + own
    if name in UNITS:
        return f"{name}: {UNITS[name].doc}", _unit_lines(UNITS[name])
    if found := find_config(name):
        return f"{name}: configuration of a {found[0]}", config_lines(found[1])
    return None
