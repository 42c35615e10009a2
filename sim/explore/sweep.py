"""A sweep file: what is varied, what is run, what counts. Everything wrong with it is one sentence."""

import itertools
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

from rtl.contract.any_config import AnyConfig
from rtl.contract.config import load
from rtl.contract.roles import roles, values
from rtl.contract.toml_file import toml_table
from sim.explore.more_columns import AREA_COLUMNS, ENERGY_COLUMNS, is_base, wants
from sim.explore.sweep_error import SweepError, need
from sim.layer_table import read_layers
from sim.run.checking import need_check
from sim.systems.registry import system_of_workload

__all__ = ["POINTS_MAX", "Objective", "Sweep", "SweepError", "read_sweep"]

POINTS_MAX = 10_000
FORMAT = 1
_TOP = {
    "format", "base", "seeds", "check", "objectives", "axis", "variant", "random", "workload", "trace", "fast",
    "area", "energy", "timeout_seconds",
}  # fmt: skip
_BASE = "base"
"""Name of the variant that changes nothing, in a sweep of energies that has none."""
_AXIS = {"field", "values", "range", "zip"}
_VALUE = int | str | bool


_OF_A_CORE = ("core", "layers")
"""Systems whose runs are of a core's model."""


@dataclass(frozen=True, slots=True)
class Objective:
    """A column of the table, and which way is better."""

    column: str
    least: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """`variants`: changed fields by name, a variant each, grid first; `named`: names of those that have one.
    `workloads`: name, parameters as texts, lists already taken apart, and layer. Points are all of them with each
    variant and each seed."""

    name: str
    base: str
    base_hash: str
    base_values: Mapping[str, Any]
    variants: tuple[Mapping[str, _VALUE], ...]
    named: Mapping[int, str]
    workloads: tuple[tuple[str, Mapping[str, str], str], ...]
    seeds: tuple[int, ...]
    check: str
    trace: bool
    fast: bool
    area: bool  # of each variant's hardware, too
    energy: bool  # of each run beside that of the base
    objectives: tuple[Objective, ...]
    timeout_seconds: int | None


def _keys(table: Mapping[str, Any], known: set[str], where: str) -> None:
    for key in table:
        like = get_close_matches(key, known, 1)
        hint = f"; do you mean {like[0]!r}?" if like else f"; there are {', '.join(sorted(known))}"
        need(key in known, f"{where} has {key!r}, which is nothing{hint}")


def _list(value: Any, what: str) -> list[Any]:
    need(isinstance(value, list) and len(cast("list[Any]", value)) > 0, f"{what} must be a list of at least one")
    found = cast("list[Any]", value)
    seen: list[Any] = []
    for one in found:
        need(not any(one == other and type(one) is type(other) for other in seen), f"{what} has {one!r} twice")
        seen.append(one)
    return found


def _range(spec: Any, what: str) -> list[int]:
    need(isinstance(spec, dict), f"{what} is a table, as in range = {{from = 16, to = 256, steps = 5, scale = 'log'}}")
    table = cast("dict[str, Any]", spec)
    _keys(table, {"from", "to", "steps", "scale"}, what)
    for key in ("from", "to", "steps"):
        need(type(table.get(key)) is int, f"{what} needs a whole number {key}")
    low, high, steps, scale = table["from"], table["to"], table["steps"], table.get("scale", "linear")
    need(scale in ("linear", "log"), f"scale of {what} must be linear or log, not {scale!r}")
    need(steps >= 2 and low < high, f"{what} needs at least 2 steps, and from below to")
    need(scale == "linear" or low > 0, f"{what} by log begins above 0")
    parts = [n / (steps - 1) for n in range(steps)]
    if scale == "log":
        found = [round(low * math.exp(math.log(high / low) * part)) for part in parts]
    else:
        found = [round(low + (high - low) * part) for part in parts]
    need(len(set(found)) == steps, f"{what} has fewer whole numbers than {steps} steps")
    return found


def _need_field(field: str, fields: Sequence[str], where: str) -> None:
    like = get_close_matches(field, fields, 1, 0.4)
    need(
        field in fields,
        f"{where} names {field!r}, which is no field; the nearest is {like[0] if like else fields[0]!r}",
    )


def _axis(table: Any, number: int, fields: Sequence[str]) -> list[dict[str, _VALUE]]:
    """The changes that an axis goes through."""
    where = f"axis {number}"
    need(isinstance(table, dict), f"{where} is no table: begin it with [[axis]]")
    _keys(table, _AXIS, where)
    if "zip" in table:
        need(set(table) == {"zip"}, f"{where} has zip and something beside it")
        zipped = cast("dict[str, Any]", table["zip"])
        need(isinstance(zipped, dict) and len(zipped) > 1, f"zip of {where} is a table of at least two fields")
        lists: dict[str, list[Any]] = {}
        for field, values in zipped.items():
            _need_field(field, fields, where)
            need(isinstance(values, list) and len(values) > 0, f"{field} in {where} must be a list of at least one")
            lists[field] = values
        lengths = {field: len(values) for field, values in lists.items()}
        need(len(set(lengths.values())) == 1, f"lists of zip in {where} are not as long as each other: {lengths}")
        return [dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)]
    need("field" in table and ("values" in table) != ("range" in table), f"{where} needs field, and values or range")
    field = table["field"]
    _need_field(str(field), fields, where)
    what = f"{field} in {where}"
    found = _list(table["values"], what) if "values" in table else _range(table["range"], what)
    return [{field: value} for value in found]


def _grid(axes: list[list[dict[str, _VALUE]]]) -> Iterator[dict[str, _VALUE]]:
    for parts in itertools.product(*axes):
        merged: dict[str, _VALUE] = {}
        for part in parts:
            merged |= part
        yield merged


def _need_once(axes: list[list[dict[str, _VALUE]]]) -> None:
    fields = [field for axis in axes for field in axis[0]]
    for field in fields:
        need(fields.count(field) == 1, f"{field} is varied by two axes")


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _workloads(tables: Any, folder: Path) -> Iterator[tuple[str, dict[str, str], str]]:
    """Name, parameters and layer ("" without a table of layers) of every combination."""
    need(isinstance(tables, list) and len(tables) > 0, "a sweep needs at least one [[workload]]")
    for number, table in enumerate(cast("list[dict[str, Any]]", tables), 1):
        where = f"workload {number}"
        _keys(table, {"name", "params", "layers"}, where)
        need(isinstance(table.get("name"), str), f"{where} needs a name")
        name, params = table["name"], table.get("params", {})
        known = list(system_of_workload(name).workloads[name].params)
        for param in params:
            like = get_close_matches(param, known, 1, 0.4)
            hint = f"the nearest is {like[0]!r}" if like else f"there are {', '.join(known)}"
            need(param in known, f"{where}: {name} has no parameter {param!r}; {hint}")
        layers: list[tuple[str, dict[str, str]]] = [("", {})]
        if "layers" in table:
            need(name == "gemm", f"{where}: layers are products, so the workload is gemm, not {name}")
            need(not {"m", "n", "k"} & set(params), f"{where}: m, n and k come from the layers")
            layers = read_layers(folder / str(table["layers"]))
        lists = {p: _list(v, f"{p} of {where}") if isinstance(v, list) else [v] for p, v in params.items()}
        for layer, sizes in layers:
            for chosen in itertools.product(*lists.values()):
                yield name, sizes | {p: _text(v) for p, v in zip(lists, chosen, strict=True)}, layer


def _base(base: str, folder: Path, workload: str) -> tuple[str, AnyConfig]:
    """A name or a path, and the configuration. Of a file beside the sweep the whole path."""
    if base.endswith(".toml"):
        base = str(folder / base)
    if system_of_workload(workload).name in _OF_A_CORE:
        return base, load(base)
    from sim.systems.configurations import by_name

    named = by_name()
    need(base in named, f"there is no configuration {base!r}; the named ones are {', '.join(named)}")
    return base, named[base]


def _objectives(texts: Any) -> tuple[Objective, ...]:
    found: list[Objective] = []
    for text in _list(texts, "objectives"):
        column, _, way = str(text).rpartition(":")
        need(way in ("min", "max") and bool(column), f"an objective is written column:min or column:max, not {text!r}")
        found.append(Objective(column, way == "min"))
    return tuple(found)


def _seeds(values: Any) -> tuple[int, ...]:
    found = _list(values, "seeds")
    need(all(type(seed) is int and seed >= 0 for seed in found), "seeds must be whole numbers from 0")
    return tuple(found)


def _variants(table: Mapping[str, Any], fields: Sequence[str]) -> tuple[list[dict[str, _VALUE]], dict[int, str]]:
    axes = [_axis(axis, n, fields) for n, axis in enumerate(table.get("axis", []), 1)]
    _need_once(axes)
    size = math.prod(len(axis) for axis in axes)
    draw = table.get("random")
    if draw is not None:
        _keys(draw, {"points", "seed"}, "random")
        count = draw.get("points")
        need(type(count) is int and 1 <= count <= size, f"points of random must be from 1 to the {size} of the grid")
        chosen = sorted(random.Random(draw.get("seed", 0)).sample(range(size), count))
        need(count <= POINTS_MAX, f"random draws {count:,} points, more than {POINTS_MAX:,}")
        found = [_nth(axes, n) for n in chosen]
    else:
        need(size <= POINTS_MAX, f"the grid has {size:,} points, more than {POINTS_MAX:,}")
        found = list(_grid(axes))
    named: dict[int, str] = {}
    for n, variant in enumerate(table.get("variant", []), 1):
        where = f"variant {n}"
        _keys(variant, {"name", "set"}, where)
        need(
            isinstance(variant.get("name"), str) and isinstance(variant.get("set"), dict), f"{where} needs name and set"
        )
        for field in variant["set"]:
            _need_field(field, fields, where)
        need(variant["name"] not in named.values(), f"two variants are called {variant['name']!r}")
        named[len(found)] = variant["name"]
        found.append(dict(variant["set"]))
    return found, named


def _nth(axes: list[list[dict[str, _VALUE]]], number: int) -> dict[str, _VALUE]:
    merged: dict[str, _VALUE] = {}
    for axis in reversed(axes):
        number, at = divmod(number, len(axis))
        merged = axis[at] | merged
    return merged


def read_sweep(path: Path) -> Sweep:
    """The sweep in a TOML file. Errors: SweepError, ConfigError and PlexusError, one sentence each."""
    table = toml_table(path, "sweep")
    _keys(table, _TOP, str(path))
    need(table.get("format") == FORMAT, f"{path} needs a line format = {FORMAT}, not {table.get('format')!r}")
    workloads = tuple(_workloads(table.get("workload"), path.parent))
    system = system_of_workload(workloads[0][0])
    for name, _, _ in workloads:
        other = system_of_workload(name)
        need(other is system, f"a sweep is of one system: {workloads[0][0]} is a {system.name}, {name} a {other.name}")
    need(isinstance(table.get("base"), str), f"{path} needs a line base = 'NAME'")
    base, cfg = _base(table["base"], path.parent, workloads[0][0])
    variants, named = _variants(table, list(roles(cfg)))
    timeout = table.get("timeout_seconds")
    need(timeout is None or (type(timeout) is int and timeout > 0), "timeout_seconds must be a whole number above 0")
    for flag in ("trace", "fast", "area", "energy"):
        need(isinstance(table.get(flag, True), bool), f"{flag} must be true or false")
    need(
        not table.get("fast") or system.name in _OF_A_CORE,
        f"fast is for a core, this sweep is of a {system.name}",
    )
    objectives = _objectives(table.get("objectives", ["cycles:min"]))
    wanted = [objective.column for objective in objectives]
    area, energy = (wants(table, *of, wanted) for of in (("area", AREA_COLUMNS), ("energy", ENERGY_COLUMNS)))
    if energy and not any(is_base(variant, values(cfg)) for variant in variants):  # an index needs its base
        named[len(variants)] = _BASE
        variants.append({})
    seeds = _seeds(table.get("seeds", [0]))
    count = len(variants) * len(workloads) * len(seeds)
    need(count <= POINTS_MAX, f"the sweep has {count:,} points, more than {POINTS_MAX:,}")
    return Sweep(
        name=path.stem,
        base=base,
        base_hash=cfg.hash,
        base_values=values(cfg),
        variants=tuple(variants),
        named=named,
        workloads=workloads,
        seeds=seeds,
        check=need_check(table.get("check", "golden")),
        trace=table.get("trace", True),
        fast=table.get("fast", False),
        area=area,
        energy=energy,
        objectives=objectives,
        timeout_seconds=timeout,
    )
