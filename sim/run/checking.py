"""How the bits of a run are checked: all of them beside the golden machine, some result tiles, or none."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from firmware.image import Image
from rtl.contract.config import Config
from sim.errors import PlexusError
from sim.native.library import PRINTED_BYTES
from sim.run.compare import Comparison, compare, compare_printed
from sim.run.device import find_device
from sim.run.kept_golden import golden_key, keep_golden, kept_golden
from sim.run.result import RunResult

__all__ = ["checked", "match_of", "need_check"]

_SAMPLE = "sample="
TILES_MAX = 1 << 20
SHOWN_MAX = 40  # characters of a wrong one


def need_check(text: str) -> str:
    """ "golden", "none", or "sample=N" with 1 to 1,048,576 result tiles. Errors: PlexusError."""
    number = text.removeprefix(_SAMPLE)
    digits = number.lstrip("0")  # Python reads no number of thousands of digits
    sample = text.startswith(_SAMPLE) and number.isascii() and number.isdecimal() and len(digits) <= len(str(TILES_MAX))
    if text not in ("golden", "none") and not (sample and 1 <= int(digits or "0") <= TILES_MAX):
        shown = text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}..."
        raise PlexusError(f"a check is golden, none or sample=N with N from 1 to {TILES_MAX}, not {shown!r}")
    return f"{_SAMPLE}{digits}" if sample else text


def match_of(check: str, good: bool) -> bool | str:
    """`match` of a report: whether what was compared is right; in a word where that was not every bit."""
    if not good or check == "golden":
        return good
    return "unchecked" if check == "none" else "sampled"


def checked(cfg: Config, image: Image, result: RunResult, check: str = "golden") -> Comparison:
    """The result beside the golden machine's, whose bits are kept: they may say that a result is right, and a
    difference from them is looked at with the golden machine itself. Whatever that one meets, the result is not
    lost. A sample is computed each time; the program chooses its tiles, by its content."""
    if check == "none":
        return Comparison(match=result.end == "done", elements=0, unchecked=True)
    key = golden_key(cfg, image)
    if check.startswith(_SAMPLE):
        machine = find_device("sampled")(cfg, int(check.removeprefix(_SAMPLE)), int(key, 16))
        expected, why = _run(machine, image)
        if expected is None or result.end != "done":
            return Comparison(match=False, elements=0, why=why, tiles=0)
        found = _compared(result, expected.outputs, _printed(expected), machine.chosen)
        return replace(found, tiles=machine.tiles)
    if result.end == "done" and (kept := kept_golden(key)) is not None and kept.outputs.keys() == result.outputs.keys():
        found = _compared(result, kept.outputs, kept.printed)
        if found.match:
            return replace(found, kept=True)
    expected, why = _run(find_device("golden")(cfg), image)
    if expected is not None:
        keep_golden(key, expected.outputs, _printed(expected))
    if expected is None or result.end != "done":
        return Comparison(match=False, elements=0, why=why)
    return _compared(result, expected.outputs, _printed(expected))


def _printed(expected: Any) -> dict[int, bytes]:
    """What programs have printed on a golden machine, as much of it as a device keeps."""
    return {core: bytes(text[:PRINTED_BYTES]) for core, text in getattr(expected, "printed", {}).items() if text}


def _compared(
    result: RunResult,
    outputs: Mapping[str, np.ndarray],
    printed: Mapping[int, bytes],
    places: Mapping[str, np.ndarray] | None = None,
) -> Comparison:
    """Outputs, and what programs have printed."""
    found = compare(result.outputs, outputs, places)
    differs = compare_printed(result.printed, printed)
    return replace(found, match=found.match and differs is None, first=found.first or differs)


def _run(golden: Any, image: Image) -> tuple[Any, str]:
    """A golden machine's result, None if it has none, and what to say if there is nothing to compare."""
    golden.load(image)
    try:
        expected = golden.run()
    except RuntimeError as error:
        return None, f"the golden machine cannot finish this program: {error}"
    if expected.faults:
        f = expected.faults[0]
        return None, f"the golden machine faults: {f.queue}, item {f.sequence}: {f.cause.name.lower()}"
    return expected, "the golden machine finishes this program"
