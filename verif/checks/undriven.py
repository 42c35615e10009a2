"""Input bits that no green run moves, outputs that none reads.

`PLEXUS_TOGGLES=1 make launchers`, then `python -m verif.checks.undriven`. A bit that is 0 (or 1) at every clock edge of
every run hides whatever is wrong behind it, and so does an output that no bench looks at. One row a bench and top, over
all seeds and configurations; an input of several widths counts once for each. Planted faults do not count.
"""

import argparse
import json
import sys
from collections import defaultdict
from pathlib import Path

from sim.toolchain import build_root

__all__ = ["main", "still", "unread"]


def _bench(folder: Path) -> str:
    """The bench of a run's folder, run-<bench>-s<seed>-p<plant>."""
    return folder.name.removeprefix("run-").partition("-s")[0]


def still(root: Path) -> dict[tuple[str, str], dict[tuple[str, int], tuple[int, int]]]:
    """By (bench, top) and (input, width): the bits never 1, the bits never 0."""
    moved: dict[tuple[str, str], dict[tuple[str, int], tuple[int, int]]] = defaultdict(dict)
    for file in sorted(root.glob("*/*/run-*/toggles.json")):
        run = json.loads((file.parent / "manifest.json").read_text())
        if run["plant"]:
            continue
        inputs = moved[_bench(file.parent), run["top"]]
        for name, (width, one, zero) in json.loads(file.read_text()).items():
            ones, zeros = inputs.get((name, width), (0, 0))
            inputs[name, width] = ones | one, zeros | zero
    return {
        key: {(n, w): (~ones & (1 << w) - 1, ~zeros & (1 << w) - 1) for (n, w), (ones, zeros) in inputs.items()}
        for key, inputs in moved.items()
    }


def unread(root: Path) -> dict[str, list[str]]:
    """By top: outputs that no green run of any bench reads."""
    reads: dict[str, dict[str, bool]] = defaultdict(dict)
    for file in sorted(root.glob("*/*/run-*/reads.json")):
        run = json.loads((file.parent / "manifest.json").read_text())
        for name, seen in json.loads(file.read_text()).items() if not run["plant"] else ():
            reads[run["top"]][name] = reads[run["top"]].get(name, False) or seen
    return {top: [name for name, seen in outputs.items() if not seen] for top, outputs in reads.items()}


def _bits(mask: int) -> str:
    """Bits of a mask as ranges: 0-3 7."""
    bits = [n for n in range(mask.bit_length()) if mask >> n & 1]
    starts = [n for n in bits if n - 1 not in bits]
    ends = [n for n in bits if n + 1 not in bits]
    return " ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))


def main() -> int:
    """Print the tables; 1 if nothing was recorded."""
    parser = argparse.ArgumentParser(prog="python -m verif.checks.undriven", description=__doc__)
    parser.add_argument("--only", default="", help="benches whose name has this in it")
    only = parser.parse_args().only
    found = {key: inputs for key, inputs in still(build_root()).items() if only in key[0]}
    if not found:
        print("no run has left its toggles: run make launchers with PLEXUS_TOGGLES=1", file=sys.stderr)
        return 1
    print("| bench | top | inputs | bits | never 1 | never 0 |\n|---|---|---|---|---|---|")
    for (bench, top), inputs in sorted(found.items()):
        bits = sum(width for _, width in inputs)
        rows = [[f"{n}[{_bits(v[k])}] of {w}" for (n, w), v in sorted(inputs.items()) if v[k]] for k in (0, 1)]
        print(
            f"| {bench} | {top} | {len(inputs)} | {bits} | {', '.join(rows[0]) or '-'} | {', '.join(rows[1]) or '-'} |"
        )
    print("\n| top | outputs that nobody reads |\n|---|---|")
    for top, names in sorted(unread(build_root()).items()):
        if top in {t for _, t in found}:
            print(f"| {top} | {', '.join(names) or '-'} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
