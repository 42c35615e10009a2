"""All states that a proof's unit can be in, one step after the other, as sets in BDDs (`reach` of ABC).

Step n holds every state that some inputs lead to within n cycles, so it says what a bounded check to depth n says; it
ends when no state is new. The size of the BDDs and the number of cycles limit it, seconds never: a busy machine takes
longer and answers the same. Bounded checks by SAT do not get far here: they go through the same states once a path.
"""

import re
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Reached", "reach"]

_COMMANDS = "read_aiger {model}; fold; strash; reach -v -B 100000000 -F 1000 -T 0"


@dataclass(frozen=True, slots=True)
class Reached:
    """`status`: PASS, FAIL (an assertion does not hold) or ERROR; `frames`: cycles until no state was new, or until
    the failure; `text`: what the tool said last.
    """

    status: str
    frames: int
    states: int
    seconds: float
    text: str


def reach(model: Path) -> Reached:
    """Go through all states of an AIGER model."""
    command = ["yosys-abc", "-c", _COMMANDS.format(model=model.name)]
    started = time.monotonic()
    done = subprocess.run(
        command, cwd=model.parent, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    took = time.monotonic() - started
    complete = re.search(r"completed after (\d+) frames.\s+Reachable states = (\d+)", done.stdout)
    failed = re.search(r"was asserted in frame (\d+)", done.stdout)
    if failed:
        return Reached("FAIL", int(failed[1]), 0, took, failed[0])
    if complete and "proved unreachable" in done.stdout:
        return Reached("PASS", int(complete[1]), int(complete[2]), took, "")
    return Reached("ERROR", 0, 0, took, (done.stdout + done.stderr)[-300:])
