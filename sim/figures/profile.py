"""Shares of the host's time by unit of the simulated core: `python -m sim.figures.profile [RUN...]`, `make profile`.

A model that can tell lines of its C++ runs what every other runs, a sampler notes where the processor is, and what is
assigned in the line there names the unit. Nothing is counted in the model, so the shares are those of a run as it is.
"""

import argparse
import ctypes
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from firmware.image import build_image
from firmware.workloads import find_workload
from rtl.contract.config import ConfigError, load
from rtl.contract.roles import needed
from sim.build.model import Built, build
from sim.errors import PlexusError
from sim.native.library import SAMPLER
from sim.native.switch import SWITCH_SOURCES, NativeSwitch
from sim.native.tracing import TRACE_RECORDS
from sim.systems.core.verilated import VerilatedDevice, build_core
from sim.systems.switch.params import SwitchRun, parse_switch
from sim.systems.switch.run import bring_up

__all__ = ["RUNS", "main"]

RUNS = {
    "gemm": ("gemm", ("m=2048", "k=2048", "n=512")),
    "attention": ("attention", ("heads=1", "seq=2048", "head=64")),
    "mxfp8": ("gemm", ("m=512", "k=4096", "n=512", "dtype=mxfp8")),
    "idle": ("", ()),
    "minilm": ("minilm", ()),
}
"""Name of a run of a core: workload and parameters; none is a core that nobody has started."""

SWITCH = "switch"
"""One run more: sixteen ports x8 under full uniform load, codecs in RTL, their endpoints in C++."""

_NAMES = (*RUNS, SWITCH)
_IDLE_CYCLES = 1_000_000
_SWITCH_CYCLES = 40_000
_EVERY_US = 1_000
_ROOM = 1 << 20
_NAME = re.compile(r"top__DOT__(\w+)")
_OWN = re.compile(r"__PVT__(\w+?)(?:___05F\w*|__v\d+)?\b")
_MODULE = re.compile(r"Vtop_([a-z]+_[a-z]+)_")
_PLACED = {"dma_mover": "dma.mover", "sbuf_group": "sbuf.group", "psum_group": "psum.group"}
"""Modules that Verilator keeps as classes of their own: where they are."""
_STATEMENT_LINES = 200
"""So far above a line, at most, its statement begins."""
_OTHER = "(Verilator's own)"
_WITHOUT_LINES = "(lanes, array in C++; C library)"
"""Cells are compiled without line tables, once for every model."""


@contextmanager
def _sampling(binary: Path) -> Iterator[list[np.ndarray]]:
    """While the body runs, places in the library at equal intervals of CPU time; the list has them then."""
    library = ctypes.CDLL(str(binary))
    library.px_sampled.restype = ctypes.c_uint64
    places = np.zeros(_ROOM, np.uint64)
    if library.px_sample(ctypes.c_void_p(places.ctypes.data), ctypes.c_uint64(_ROOM), ctypes.c_uint64(_EVERY_US)):
        raise PlexusError(f"{binary} does not find itself in memory, so nothing can be sampled")
    found: list[np.ndarray] = []
    try:
        yield found
    finally:
        found.append(places[: library.px_sampled()])


def _core_run(run: str, config: str) -> tuple[Built, np.ndarray, float]:
    """The model of a core, places in it, microseconds of the host a cycle."""
    workload, settings = RUNS[run]
    cfg = load(config)
    built = build_core(needed(cfg), profiled=True)
    with VerilatedDevice(cfg, built.binary, trace_records=TRACE_RECORDS) as device:
        if workload:
            maker = find_workload(workload)
            device.load(build_image(maker.build(cfg, maker.parse(settings), 0)))
        else:
            device.core.reset()
        before = device.core.cycle
        with _sampling(built.binary) as places:
            if workload:
                end = device.run().end
                if end != "done":
                    raise PlexusError(f"the run that is profiled ends with {end}")
            else:
                device.core.run(_IDLE_CYCLES, milliseconds=1 << 30)
        micros = device.core.cpu_seconds / (device.core.cycle - before) * 1e6
    return built, places[0], micros


def _switch_run() -> tuple[Built, np.ndarray, float]:
    """The same of a switch."""
    run = SwitchRun(params=parse_switch(()))
    cfg, traffic = run.cfg, run.traffic(run.cfg)
    built = build(
        "switch",
        cfg,
        kind="native",
        options={"form": "structural"},
        extra_cpp=(*SWITCH_SOURCES, SAMPLER),
        profiled=True,
    )
    switch = NativeSwitch(built.binary, cfg, traffic)
    try:
        bring_up(switch, cfg, traffic)
        before, begin = switch.counts().cycles, time.process_time()
        with _sampling(built.binary) as places:
            switch.run(_SWITCH_CYCLES, sending=True, milliseconds=1 << 30)
        micros = (time.process_time() - begin) / (switch.counts().cycles - before) * 1e6
    finally:
        switch.close()
    return built, places[0], micros


def _lines(binary: Path, places: np.ndarray) -> list[list[tuple[str, int]]]:
    """File and line of each place, the function it was inlined into behind it, and so on."""
    tool = shutil.which("addr2line")
    if tool is None:
        raise PlexusError("addr2line is needed to name what was sampled and is not on PATH: install binutils")
    asked = "\n".join(f"{place:#x}" for place in places.tolist())
    command = [tool, "-a", "-i", "-e", str(binary)]
    told = subprocess.run(command, input=asked, capture_output=True, text=True, check=True).stdout
    found: list[list[tuple[str, int]]] = []
    for line in told.splitlines():
        if line.startswith("0x"):
            found.append([])
            continue
        file, _, number = line.partition(" ")[0].rpartition(":")
        found[-1].append((Path(file).name, int(number) if number.isdigit() else 0))
    return found


class Units:
    """Names of units from lines of a model's C++."""

    def __init__(self, folder: Path, depth: int):
        self.depth = depth
        self._text = cache(lambda name: (folder / "obj" / name).read_text(errors="replace").splitlines())
        self._of_line = cache(self._find)

    def of(self, chain: Sequence[tuple[str, int]]) -> str:
        """What the first line that is the model's own assigns; a file of ours; or Verilator."""
        for name, number in chain:
            if name.startswith("Vtop_"):
                return self._of_line(name, number)
        last = chain[-1][0] if chain else "?"
        if last.startswith("?"):
            return _WITHOUT_LINES
        return _OTHER if last.startswith(("verilated", "Vtop")) else f"C++: {last}"

    def _find(self, name: str, number: int) -> str:
        text = self._text(name)
        module = _MODULE.match(name)
        above = [_PLACED.get(module[1], module[1])] if module else []
        for line in text[max(0, number - _STATEMENT_LINES) : number][::-1]:
            found = (module and _OWN.search(line)) or _NAME.search(line)
            if found:
                own = found.re is _OWN
                parts = [*above, *found[1].split("__DOT__")] if own else found[1].split("__DOT__")
                return ".".join(re.sub(r"\d+$", "", part) for part in parts[: self.depth])
            if line.startswith("}"):
                break
        return ".".join(above) or _OTHER


def profile(run: str, config: str, depth: int) -> tuple[Counter[str], float]:
    """Samples by unit, and microseconds of the host a cycle."""
    built, places, micros = _switch_run() if run == SWITCH else _core_run(run, config)
    units = Units(built.folder, depth)
    kinds, counts = np.unique(places, return_counts=True)
    shares: Counter[str] = Counter()
    for chain, count in zip(_lines(built.binary, kinds), counts.tolist(), strict=True):
        shares[units.of(chain)] += count
    return shares, micros


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: a table for each run. Exit code 0, or 2 for wrong use."""
    parser = argparse.ArgumentParser(prog="sim.figures.profile", description="Shares of the host's time by unit.")
    parser.add_argument("runs", nargs="*", metavar="RUN", help=f"of {', '.join(_NAMES)}; all if none is named")
    parser.add_argument("--config", default="full", metavar="NAME")
    parser.add_argument("--depth", type=int, default=1, metavar="N", help="levels of the hierarchy that are told apart")
    parser.add_argument("--least", type=float, default=1.0, metavar="PERCENT", help="smaller shares are summed")
    options = parser.parse_args(arguments)
    console = Console()
    try:
        for run in options.runs or _NAMES:
            if run not in _NAMES:
                raise PlexusError(f"there is no run {run!r} to profile; there are {', '.join(_NAMES)}")
            shares, micros = profile(run, options.config, options.depth)
            total = shares.total()
            table = Table("unit", "share %", box=None, title=f"{run}: {micros:.2f} us a cycle, {total:,} samples")
            rest = 0
            for unit, count in shares.most_common():
                if 100 * count < options.least * total:
                    rest += count
                    continue
                table.add_row(unit, f"{100 * count / total:.1f}")
            table.add_row("others", f"{100 * rest / total:.1f}")
            console.print(table)
    except (PlexusError, ConfigError) as error:
        print(f"plexus: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
