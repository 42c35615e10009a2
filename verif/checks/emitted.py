"""What `plexus emit` writes, read by other tools: every top through Yosys' checks and Verilator's lint.

    python -m verif.checks.emitted [TOP ...]     all tops, at `tiny`, if none is named

Yosys must find every module (so nothing is a C++ model), one driver for each bit, no loop; Verilator must have nothing
to say but what sim/build/waivers.py names. `make test` looks at QUICK, `make regress` at all.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from rtl.contract.config import named
from rtl.contract.isa import Queue
from rtl.emit.verilog import Emitted
from sim.build.emitting import emit_top
from sim.build.lint import warnings_of
from sim.build.tops import TOPS
from sim.errors import PlexusError
from sim.toolchain import ROOT, environment

__all__ = ["COMPARED", "QUICK", "check", "faults_of"]

COMPARED = ("add_lanes", "array_lockstep", "codec_lockstep", "lanes_lockstep")
"""Tops that hold the C++ model beside the RTL, to compare them."""

_LARGE = (
    "array", "core", "core_pair", "issue", "receive_path", "scalar_engine", "special_units", "switch", "switch_bypass",
    "switch_responder", "switch_scheduler", "switch_scheduler_alone", "tensor_engine", "tile", "vector_engine",
    "framing",  "flit_decoder", "dma", "switch_crossbar", "port_device", "lane_pair",
)  # fmt: skip
QUICK = tuple(name for name in TOPS if name not in (*COMPARED, *_LARGE))
"""Tops that take seconds; a port with its lanes, which holds the whole link, is one of them."""

_OPTIONS: dict[str, dict[str, Any]] = {
    "axi_share": {"port_bytes": 64},
    "check": {"queue": Queue.TENSOR},
    "class_queues": {"depth": 16},
    "fifo": {"shape": 8, "depth": 3},
    "issue_queue": {"queue": Queue.TENSOR},
    "lane_pair": {"interval": 64, "delay": 3},
    "ram": {"width": 16, "depth": 8, "granule": 8},
    "ram_fifo": {"shape": 8, "depth": 8},
    "semaphores": {"readers": 2, "writers": 2},
}
"""Of tops that have no defaults for them."""


def _yosys(emitted: Emitted) -> str:
    """What Yosys refuses, or nothing."""
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder, "emitted.v")
        text.write_text(emitted.text)
        files = [*(s for s in emitted.sources if s.suffix in (".v", ".sv")), text]
        script = [f"read_verilog -sv {file}" for file in files]
        script += [f"hierarchy -check -top {emitted.top}", "proc", "check -assert"]
        done = subprocess.run(
            [ROOT / "tools" / "yosys", "-p", "; ".join(script)],
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
    if not done.returncode:
        return ""
    lines = [line for line in (done.stdout + done.stderr).splitlines() if "ERROR" in line or "Warning" in line]
    return "\n".join(lines[-5:]) or f"Yosys ended with code {done.returncode}"


def faults_of(emitted: Emitted) -> list[str]:
    """All that other tools have against emitted Verilog."""
    models = [f"it calls C++: {s.name}" for s in emitted.sources if s.suffix == ".cpp"]
    refused = _yosys(emitted) if not models else ""
    return [*models, *([f"Yosys: {refused}"] if refused else []), *warnings_of(emitted)]


def check(top: str) -> list[str]:
    """All that other tools have against `top` at `tiny`, as `plexus emit` writes it."""
    return faults_of(emit_top(top, named("tiny"), options=_OPTIONS.get(top)))


def main() -> int:
    """Check the tops that are named. Returns 1 if any has a fault."""
    parser = argparse.ArgumentParser(prog="python -m verif.checks.emitted")
    parser.add_argument("tops", nargs="*", metavar="TOP")
    bad = 0
    for top in parser.parse_args().tops or [name for name in TOPS if name not in COMPARED]:
        try:
            faults = check(top)
        except PlexusError as error:
            faults = [str(error)]
        bad += bool(faults)
        print("\n".join([f"{top}: {len(faults)} faults", *faults[:5]]) if faults else f"{top}: clean", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
