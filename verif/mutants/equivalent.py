"""Whether Yosys can prove that a mutant changes nothing that leaves the unit.

First a glance at the gates that anybody reads (unread.py), in seconds. Then signals of both netlists are paired by
name; induction over a few cycles shows that pairs never differ. If that fails, only registers and ports are paired: a
bit between them that nobody reads may differ. What this cannot prove may still be equivalent, for reasons outside or
many cycles long: verif/plan/mutants.toml waives it.
"""

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from sim.toolchain import environment
from verif.mutants.insert import PREPARED, black_boxes
from verif.mutants.mutant import Mutant
from verif.mutants.unread import GATES, same_gates

__all__ = ["is_equivalent"]

LIMIT_SECONDS = 60
_CYCLES = 3
_BETWEEN = "w:* t:*dff* %co1:+[Q] w:* %i %d"
"""Wires that are no output of a register; ports keep their names anyway."""


def is_equivalent(build: Path, mutant: Mutant, limit_seconds: float = LIMIT_SECONDS) -> bool:
    """Proved within the limit; False says nothing. `build`: the folder of a model with mutants."""
    if _is_unread(build, mutant, limit_seconds):
        return True
    return any(_proved(build, mutant, hidden, limit_seconds) for hidden in ("", f"rename -hide {_BETWEEN}"))


def _both(build: Path, mutant: Mutant, hide: str = "") -> list[str]:
    """Commands that make the unit, `whole`, and the mutant, `changed`."""
    return [
        *black_boxes(build),
        f"read_rtlil {build / PREPARED}",
        hide,
        "copy top changed",
        "rename top whole",
        mutant.command("changed"),
    ]


def _is_unread(build: Path, mutant: Mutant, limit_seconds: float) -> bool:
    script = [*_both(build, mutant), *GATES, "write_json gates.json"]
    gates = _yosys(script, limit_seconds, "gates.json")
    return gates is not None and same_gates(gates)


def _proved(build: Path, mutant: Mutant, hide: str, limit_seconds: float) -> bool:
    script = [
        *_both(build, mutant, hide),
        "equiv_make whole changed both",
        "hierarchy -top both",
        "memory_map",
        "equiv_simple",
        f"equiv_induct -seq {_CYCLES}",
        "equiv_status -assert",
    ]
    return _yosys(script, limit_seconds) is not None


def _yosys(script: Sequence[str], limit_seconds: float, result: str = "") -> str | None:
    """What a script leaves in the file `result`; None if it fails or takes too long."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "equivalent.ys")
        path.write_text("\n".join(script) + "\n")
        try:
            done = subprocess.run(
                [environment()["YOSYS"], "-q", "-s", str(path)],
                cwd=folder,
                env=environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=limit_seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return None
        if done.returncode:
            return None
        return Path(folder, result).read_text() if result else ""
