"""Whole arrays through one Verilated unit."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from firmware.npz import read_npz
from firmware.views import KernelError
from rtl.contract.config import Config
from rtl.contract.link import FLIT_BYTES
from rtl.contract.link_config import LINKS
from sim.build.model import build
from sim.build.tops import factory, top
from sim.errors import PlexusError
from sim.native.streaming import STREAM_SOURCES, stream
from sim.run.flits import through_codec
from sim.run.units import Unit, find_unit
from sim.whole_file import whole_file

__all__ = ["evaluate", "read_arrays", "write_arrays"]


def _strings(unit: Unit, given: Mapping[str, np.ndarray]) -> dict[str, str]:
    strings: dict[str, str] = {}
    for name, words in unit.strings.items():
        if name in given:
            array = given[name]
            if array.ndim != 0 or array.dtype.kind != "U":
                raise PlexusError(f"{name} must be one text (a 0-d array), not {array.dtype} of shape {array.shape}")
            strings[name] = str(array[()])
        else:
            strings[name] = str(unit.defaults[name])
        if strings[name] not in words:
            raise PlexusError(f"{name} must be one of {', '.join(words)}, not {strings[name]!r}")
    return strings


def _checked(unit: Unit, given: Mapping[str, np.ndarray]) -> tuple[dict[str, np.ndarray], dict[str, str], int]:
    """Inputs, texts and the number of elements. PlexusError for a wrong name, type or shape."""
    known = [*unit.inputs, *unit.strings]
    for name in given:
        if name not in known:
            raise PlexusError(f"unit {unit.name} takes {', '.join(known)}, and no {name!r}")
    for name in known:
        if name not in given and name not in unit.defaults:
            raise PlexusError(f"unit {unit.name} needs an array {name!r}; it takes {', '.join(known)}")
    strings = _strings(unit, given)
    refusal = unit.refusal(strings) if unit.refusal is not None else ""
    if refusal:
        raise PlexusError(refusal)
    arrays: dict[str, np.ndarray] = {}
    for name in unit.inputs:
        want = np.dtype(unit.dtype(name, strings))
        array = given[name] if name in given else np.array([unit.default(name, strings)], want)
        tail = array.shape[1:] if unit.rows else unit.shapes.get(name, ())
        if array.dtype != want:
            raise PlexusError(f"{name} must hold bit patterns as {want}, not {array.dtype}")
        if array.ndim != 1 + len(tail) or array.shape[1:] != tail:
            shape = "".join(f", {n}" for n in tail)
            raise PlexusError(f"{name} must have the shape (n{shape or ','}), not {array.shape}")
        if unit.rows and (array.ndim != 2 or array.shape[1] == 0):
            raise PlexusError(f"{name} must have the shape (n, k) with rows of at least 1 element, not {array.shape}")
        if len(array) == 0:
            raise PlexusError(f"{name} has no elements; at least 1 is needed")
        if name in unit.limits and array.max() > unit.limits[name]:
            raise PlexusError(f"{name} must hold values up to {unit.limits[name]}, not {array.max()}")
        arrays[name] = array
    count = max(len(a) for a in arrays.values())
    for name, array in arrays.items():
        if len(array) not in (1, count):
            raise PlexusError(f"{name} has {len(array)} elements; it must have {count} as the longest array, or 1")
    return arrays, strings, count


def evaluate(name: str, given: Mapping[str, np.ndarray], cfg: Config) -> dict[str, np.ndarray]:
    """What unit `name` makes of the arrays: element i of every input gives element i of every output.

    Arrays are bit patterns; length 1 broadcasts; texts are 0-d. Errors: PlexusError, one sentence.
    """
    unit = find_unit(name)
    arrays, strings, count = _checked(unit, given)
    built = build(unit.top, LINKS["x8"] if unit.flits else cfg, kind="native", extra_cpp=STREAM_SOURCES)
    if unit.rows:
        return _rows(unit, built.binary, arrays, strings)
    if unit.flits:
        rows = next(iter(arrays.values()))
        filled = np.pad(rows, ((0, 0), (0, FLIT_BYTES - rows.shape[1])))
        return through_codec(unit.top, built.binary, filled, LINKS["x8"])
    inputs = dict(arrays)
    for text, word in strings.items():
        inputs[text] = np.array([unit.strings[text][word]], np.uint8)
    before = 0
    if unit.before is not None:
        given_first = unit.before(strings, cfg)
        before = len(next(iter(given_first.values())))
        inputs = {name: _after(array, before) for name, array in inputs.items()}
        inputs |= {name: np.concatenate([a, np.zeros(count, a.dtype)]) for name, a in given_first.items()}
    outputs = {
        out: np.empty((before + count, *unit.shapes.get(out, ())), np.dtype(unit.dtype(out, strings)))
        for out in unit.outputs
    }
    stream(built.binary, factory(top(unit.top)).LATENCY, inputs, outputs)
    return {name: array[before:] for name, array in outputs.items()}


def _rows(
    unit: Unit, library: Path, arrays: Mapping[str, np.ndarray], strings: Mapping[str, str]
) -> dict[str, np.ndarray]:
    """Rows one after the other, in beats of as many elements as the unit has slots, and after each its tree."""
    ((name, rows),) = arrays.items()
    count, length = rows.shape
    slots = factory(top(unit.top)).SLOTS
    beats = -(-length // slots)
    cycles = beats + factory(top(unit.top)).TREE[slots]
    beat = np.arange(cycles)

    def every_row(values: np.ndarray) -> np.ndarray:
        return np.tile(values.astype(np.uint8), count)

    wide = np.zeros((count, cycles * slots), rows.dtype)
    wide[:, :length] = rows
    elements = np.clip(length - beat * slots, 0, slots)
    inputs = {name: wide.reshape(-1, slots), "valid": every_row((1 << elements) - 1)}
    inputs["position"] = every_row(beat * slots % 8)
    inputs["first"] = every_row(beat == 0)
    inputs["last"] = every_row(beat == beats - 1)
    inputs |= {text: np.array([unit.strings[text][word]], np.uint8) for text, word in strings.items()}
    (out,) = unit.outputs
    seen = {out: np.empty(count * cycles, np.dtype(unit.dtype(out, strings)))}
    # A row's result is there in the cycle after its last; latency 1 puts that into the last one's place.
    stream(library, 1, inputs, seen)
    return {out: np.ascontiguousarray(seen[out].reshape(count, cycles)[:, -1])}


def _after(array: np.ndarray, before: int) -> np.ndarray:
    """The array with `before` zeros in front, if it is not held anyway."""
    if len(array) == 1:
        return array
    return np.concatenate([np.zeros((before, *array.shape[1:]), array.dtype), array])


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz file. PlexusError if it is none."""
    try:
        return read_npz(path)
    except KernelError as error:
        raise PlexusError(str(error)) from None


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write an .npz file, whole or not at all. PlexusError if that fails."""
    with whole_file(path) as place, place.open("wb") as out:
        np.savez(out, **dict(arrays))  # type: ignore[arg-type]
