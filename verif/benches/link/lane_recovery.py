"""Measure how fast the lanes recover: `python -m verif.benches.link.lane_recovery [x8 ...]`. Prints a table; builds
take some minutes.

Time from the fault to the first good flit on the new map, in flit times at full width, worst of all runs.
"""

import dataclasses
import json
import sys

from rtl.contract.link import MARKER_INTERVAL_FLITS
from rtl.contract.link_config import LINKS
from sim.run.runner import run_bench

__all__ = ["CASES", "measure"]

CASES = (("x8", 2, 20), ("x8", 2, 100), ("x8", 2, 250), ("x16", 1, 100), ("x4", 1, 100), ("x1", 1, 100))
"""Link, spare lanes, cycles on the wires each way."""
_TESTS = {"COCOTB_TEST_FILTER": "lanes_die|both_directions|two_lanes"}


def measure(link: str, spares: int, delay: int, seed: int) -> list[dict[str, object]]:
    """Recoveries of one run of the pair bench with markers as the product sends them."""
    cfg = dataclasses.replace(LINKS[link], spare_lanes=spares)
    options = {"interval": MARKER_INTERVAL_FLITS, "delay": delay}
    bench = "verif.benches.link.bench_lane_pair"
    verdict = run_bench("lane_pair", bench, cfg, seed=seed, planted=True, options=options, environment=_TESTS)
    if verdict.failed:
        print(f"{link} delay {delay}: {verdict.first[:200]}")
    return [json.loads(line) for line in (verdict.folder / "recovery.jsonl").read_text().splitlines()]


def main(only: list[str]) -> None:
    """All cases, or those of the links named; three seeds."""
    print("| link | spares | cycles each way | fault | hurt direction | slower direction | runs |")
    print("|---|---|---|---|---|---|---|")
    for link, spares, delay in (case for case in CASES if not only or case[0] in only):
        found: dict[str, list[tuple[int, int]]] = {}
        for seed in (1, 2, 3):
            for entry in measure(link, spares, delay, seed):
                times = (int(str(entry["flit_times"])), int(str(entry["both_directions"])))
                found.setdefault(str(entry["what"]), []).append(times)
        for what, times in sorted(found.items()):
            hurt, both = max(t[0] for t in times), max(t[1] for t in times)
            print(f"| {link} | {spares} | {delay} | {what} | {hurt} | {both} | {len(times)} |")


if __name__ == "__main__":
    main(sys.argv[1:])
