"""Whether Yosys can prove that a mutant changes nothing that leaves the unit.

First only what differs, gate by gate, is proved to be the same function (cones.py), in seconds: that is enough unless
it takes to know which states a unit never gets into. Then signals of both netlists are paired by name; induction over a
few cycles shows that pairs never differ. If that fails, only registers and ports are paired: a bit between them may
differ. What this cannot prove may still be equivalent, for reasons outside or many cycles long:
verif/plan/mutants.toml waives it.
"""

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from sim.toolchain import environment
from verif.mutants.cones import CUTS, cones_of, miter, proof
from verif.mutants.gates import GATES
from verif.mutants.insert import PREPARED, black_boxes
from verif.mutants.mutant import Mutant

__all__ = ["is_equivalent", "is_same_function"]

LIMIT_SECONDS = 40
"""Of each attempt: what is proved at all mostly takes a few."""
_READ_SECONDS = 120
"""Of a large unit's gates."""
_CYCLES = 3
_BETWEEN = "w:* t:*dff* %co1:+[Q] w:* %i %d"
"""Wires that are no output of a register; ports keep their names anyway."""


def is_equivalent(build: Path, mutant: Mutant, limit_seconds: float = LIMIT_SECONDS) -> bool:
    """Proved within the limit; False says nothing. `build`: the folder of a model with mutants."""
    netlists = _yosys([*_both(build, mutant), *GATES, "write_json result.json"], _READ_SECONDS)
    if netlists and is_same_function(netlists):
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


def is_same_function(netlists: str, limit_seconds: float = LIMIT_SECONDS) -> bool:
    """What leaves the unit and what registers hold next is proved the same, whatever registers and inputs hold now.

    `netlists`: Yosys's JSON of modules `whole` and `changed`, after GATES.
    """
    cones = cones_of(netlists)
    if cones is None or not cones.pairs:
        return cones is not None
    return any(_yosys(proof(limit_seconds), limit_seconds, miter(cones, n)) is not None for n in CUTS)


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


def _yosys(script: Sequence[str], limit_seconds: float, netlist: str = "") -> str | None:
    """What a script, which begins with a `netlist` in JSON if there is one, leaves in result.json; empty without one.

    None if it fails or takes too long.
    """
    with tempfile.TemporaryDirectory() as folder:
        path, result = Path(folder, "equivalent.ys"), Path(folder, "result.json")
        if netlist:
            Path(folder, "netlist.json").write_text(netlist)
            script = ["read_json netlist.json", *script]
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
        return result.read_text() if result.exists() else ""
