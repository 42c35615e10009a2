"""Input bits that no green run moves: `PLEXUS_TOGGLES=1 make launchers`, then `python -m verif.checks.undriven`.

A bit that is 0 (or 1) at every clock edge of every run hides whatever is wrong behind it. One row a bench and top,
over all configurations and seeds that ran; planted faults do not count.
"""

import argparse
import json
import sys
from collections import defaultdict
from pathlib import Path

from sim.toolchain import build_root

__all__ = ["main", "still"]


def _bench(folder: Path) -> str:
    """The bench of a run's folder, run-<bench>-s<seed>-p<plant>."""
    return folder.name.removeprefix("run-").partition("-s")[0]


def still(root: Path) -> dict[tuple[str, str], dict[str, tuple[int, int, int]]]:
    """By (bench, top) and input: its width, the bits never 1, the bits never 0."""
    ones: dict[tuple[str, str], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    zeros: dict[tuple[str, str], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    widths: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for file in sorted(root.glob("*/*/run-*/toggles.json")):
        run = json.loads((file.parent / "manifest.json").read_text())
        if run["plant"]:
            continue
        key = _bench(file.parent), run["top"]
        for name, (width, one, zero) in json.loads(file.read_text()).items():
            widths[key][name] = max(width, widths[key].get(name, 0))
            ones[key][name] |= one
            zeros[key][name] |= zero
    found: dict[tuple[str, str], dict[str, tuple[int, int, int]]] = {}
    for key, inputs in widths.items():
        found[key] = {n: (w, ~ones[key][n] & (1 << w) - 1, ~zeros[key][n] & (1 << w) - 1) for n, w in inputs.items()}
    return found


def _bits(mask: int) -> str:
    """Bits of a mask as ranges: 0-3 7."""
    bits = [n for n in range(mask.bit_length()) if mask >> n & 1]
    starts = [n for n in bits if n - 1 not in bits]
    ends = [n for n in bits if n + 1 not in bits]
    return " ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))


def main() -> int:
    """Print the table; 1 if nothing was recorded."""
    parser = argparse.ArgumentParser(prog="python -m verif.checks.undriven", description=__doc__)
    parser.add_argument("--only", default="", help="benches whose name has this in it")
    only = parser.parse_args().only
    found = {key: inputs for key, inputs in still(build_root()).items() if only in key[0]}
    if not found:
        print("no run has left its toggles: run the launchers with PLEXUS_TOGGLES=1", file=sys.stderr)
        return 1
    print("| bench | top | input bits | never 1 | never 0 |\n|---|---|---|---|---|")
    for (bench, top), inputs in sorted(found.items()):
        bits = sum(width for width, _, _ in inputs.values())
        never = [", ".join(f"{n}[{_bits(v[k])}]" for n, v in sorted(inputs.items()) if v[k]) or "-" for k in (1, 2)]
        print(f"| {bench} | {top} | {bits} | {never[0]} | {never[1]} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
