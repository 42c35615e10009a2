"""How the bits of a run are checked: all of them beside the golden machine, or not at all."""

from dataclasses import replace

from firmware.image import Image
from rtl.contract.config import Config
from sim.errors import PlexusError
from sim.run.compare import Comparison, compare
from sim.run.device import find_device
from sim.run.kept_golden import golden_key, keep_golden, kept_golden
from sim.run.result import RunResult

__all__ = ["CHECKS", "checked", "need_check"]

CHECKS = ("golden", "none")


def need_check(text: str) -> str:
    """A word of CHECKS. Errors: PlexusError."""
    if text not in CHECKS:
        raise PlexusError(f"a check is {' or '.join(CHECKS)}, not {text!r}")
    return text


def checked(cfg: Config, image: Image, result: RunResult, check: str = "golden") -> Comparison:
    """The result beside the golden machine's, whose bits are kept: they may say that a result is right, and a
    difference from them is looked at with the golden machine itself. Whatever that one meets, the result is not
    lost."""
    if check == "none":
        return Comparison(match=result.end == "done", elements=0, unchecked=True)
    key = golden_key(cfg, image)
    if result.end == "done" and (kept := kept_golden(key)) is not None and kept.keys() == result.outputs.keys():
        found = compare(result.outputs, kept)
        if found.match:
            return replace(found, kept=True)
    golden = find_device("golden")(cfg)
    golden.load(image)
    try:
        expected = golden.run()
    except RuntimeError as error:
        why = f"the golden machine cannot finish this program: {error}"
        return Comparison(match=False, elements=0, why=why)
    if expected.faults:
        f = expected.faults[0]
        why = f"the golden machine faults: {f.queue}, item {f.sequence}: {f.cause.name.lower()}"
        return Comparison(match=False, elements=0, why=why)
    keep_golden(key, expected.outputs)
    if result.end != "done":
        return Comparison(match=False, elements=0, why="the golden machine finishes this program")
    return compare(result.outputs, expected.outputs)
