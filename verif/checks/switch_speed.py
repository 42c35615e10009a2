"""Speed and size of the scheduler alone: python -m verif.checks.switch_speed [SWITCH...], sw16 if none is named.

Prints cycles a second of processor time of a native build. With --emit: seconds to convert and to lint it.
"""

import argparse
import resource
import subprocess
import time

import numpy as np

from rtl.contract.switch_config import SWITCHES
from rtl.emit.verilog import emit
from sim.build import build, make_component
from sim.build.tops import top
from sim.native.streaming import STREAM_SOURCES, stream
from sim.toolchain import activate, build_root

__all__ = ["emitted", "speed"]

TOP = "switch_scheduler_alone"
CYCLES = 50_000


def speed(name: str) -> float:
    """Cycles a second, the best of 5: other requests in every cycle, a tenth of all lists not empty."""
    cfg = SWITCHES[name]
    library = build(TOP, cfg, kind="native", extra_cpp=STREAM_SOURCES).binary
    rng = np.random.default_rng(1)
    n, queues = cfg.inputs, cfg.link.queues
    cycle = np.arange(CYCLES)
    lists = np.packbits(rng.random((CYCLES, n * queues)) < 0.1, axis=1, bitorder="little")
    lengths = rng.integers(0, 256, (CYCLES, (n * cfg.length_cap_flits.bit_length() + 7) // 8), np.uint8)
    inputs = {
        "slot": (cycle % cfg.slot_cycles == 0).astype(np.uint8)[:, None],
        "row": (cycle % n).astype(np.uint8)[:, None],
        "lists": lists,
        "lengths": lengths,
        "ready": np.full((1, n * queues // 8), 255, np.uint8),
    }
    best = 0.0
    for _ in range(5):
        outputs = {"start": np.zeros((CYCLES, (n + 7) // 8), np.uint8)}
        begin = time.thread_time()
        stream(library, 1, inputs, outputs)
        best = max(best, CYCLES / (time.thread_time() - begin))
        assert outputs["start"][100:].any(), "the scheduler sends nothing"
    return best


def _processor() -> float:
    """Seconds of processor time of this process and its children."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def emitted(name: str) -> tuple[float, float, float]:
    """Seconds of processor time to convert, megabytes of Verilog, seconds to lint it with Verilator."""
    activate()
    begin = _processor()
    text = emit(make_component(top(TOP), SWITCHES[name], {}), "top").text
    middle = _processor()
    folder = build_root() / "emit"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{TOP}-{name}.v"
    file.write_text(text)
    flags = ["--no-timing", "-Wno-lint", "-Wno-style", "-Werror-UNOPTFLAT"]  # the last: no combinational loop
    subprocess.run(["verilator", "--lint-only", *flags, str(file)], check=True)
    return middle - begin, len(text) / 1e6, _processor() - middle


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=["sw16"])
    parser.add_argument("--emit", action="store_true")
    given = parser.parse_args()
    for name in given.names:
        if given.emit:
            convert, size, lint = emitted(name)
            print(f"{name}: converted in {convert:.0f} s, {size:.1f} MB, linted in {lint:.0f} s", flush=True)
        else:
            print(f"{name}: {speed(name):,.0f} cycles/s", flush=True)


if __name__ == "__main__":
    main()
