"""Combinational loops of a component: what Verilator finds in the Verilog of the whole of it, all modules flattened."""

import re
import subprocess
import tempfile
from pathlib import Path

from amaranth.lib import wiring

from rtl.emit.verilog import emit
from sim.toolchain import activate, environment, verilator_root

__all__ = ["loops"]

_LOOP = re.compile(r"%Warning-UNOPTFLAT: \S+: (.*)")


def loops(component: wiring.Component) -> list[str]:
    """A line for each loop: the signal in it that Verilator names. It may name one where bits of a signal depend on
    others of it, never none where there is one. Errors: RuntimeError if Verilator fails."""
    activate()
    emitted = emit(component, "top")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "top.v").write_text(emitted.text)
        command = [
            *("perl", str(verilator_root() / "bin" / "verilator"), "--cc", "--no-timing", "--timescale", "1ns/1ps"),
            *("--top-module", "top", "--prefix", "Vtop", "-Mdir", "obj"),
            *("-Wno-fatal", "-Wno-lint", "-Wno-style", "-Wwarn-UNOPTFLAT"),
            *(str(s) for s in emitted.sources if s.suffix in (".sv", ".v")),
            "top.v",
        ]
        done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"Verilator failed:\n{done.stderr[-2000:]}")
    return _LOOP.findall(done.stderr)
