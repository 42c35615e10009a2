"""What `make test` did not run: every skipped test by name, and in how many runs. `python -m verif.checks.skips`.

Reads the JUnit files that pytest and the benches have left since `make test` began; a bench runs several
times, on configurations where some of its tests do not apply.
"""

import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

from sim.toolchain import ROOT, build_root

__all__ = ["main", "skipped"]

STAMP = ROOT / "build" / "test-start"
"""`make test` touches this before its stages: what is older belongs to other sources."""


def skipped(files: Iterable[Path]) -> tuple[Counter[str], Counter[str]]:
    """Runs in which each test was skipped, and in which it was not."""
    without: Counter[str] = Counter()
    ran: Counter[str] = Counter()
    for file in files:
        for case in ElementTree.parse(file).iter("testcase"):
            name = f"{case.get('classname', '?')}.{case.get('name', '?')}"
            (ran if case.find("skipped") is None else without)[name] += 1
    return without, ran


def main() -> int:
    """Print them; 1 if a test was skipped wherever it could have run."""
    since = STAMP.stat().st_mtime if STAMP.exists() else 0.0
    files = [*(ROOT / "build").glob("junit-*.xml"), *(build_root() / "results").glob("*.xml")]
    without, ran = skipped(file for file in sorted(files) if file.stat().st_mtime >= since)
    print(f"{len(without)} tests are skipped somewhere, {sum(without.values())} times; all others ran everywhere")
    for name, times in sorted(without.items()):
        print(f"  {name}: skipped {times}, ran {ran[name]}")
    never = [name for name in without if not ran[name]]
    print(f"{len(never)} of them never ran" + (f": {', '.join(sorted(never))}" if never else ""))
    return int(any(name.startswith("verif.benches.") for name in never))


if __name__ == "__main__":
    sys.exit(main())
