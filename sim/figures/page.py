"""docs/figures.md, all figures that `python -m sim.bench` measures: python -m sim.figures.page

Takes what build/bench.json holds over into docs/figures.json, where a figure stays until it is measured again, and
writes the page from that. `make bench` runs it behind the measurement.
"""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from sim.figures.rows import Row, read_rows, table, write_rows
from sim.toolchain import ROOT, build_root

__all__ = ["KEPT", "PAGE", "SECTIONS", "main", "page", "taken_over"]

KEPT = ROOT / "docs" / "figures.json"
PAGE = ROOT / "docs" / "figures.md"

_TEXT = """# Figures

`make bench` measures all of these and writes this page (`python -m sim.figures.page`, from `build/bench.json` by way of
[figures.json](figures.json)): edit neither. For a section alone, its command, then `python -m sim.figures.page`. A
figure stays until it is measured again; the first ones were taken over from the README and the pages of the units.

At `--config full` (128 partitions, 128 x 128 array, FP32 accumulation) if nothing else is said. Cycles, their ratios
and shares are exact and the same everywhere: `make bench` fails if one misses its target. Those of smaller runs are
held to the cycle by [a ledger](../verif/plan/cycles.toml). Seconds, GiB and cycles/s are those of 2 cores of a shared
x86-64 machine (AVX-512); they are judged too, and fail with `--strict` only. A bound is what the same program must take
at least ([report](report.md)).

## Matrix products

In BF16. Utilization is that of the tensor engine's window, from its first beat to its last sum, operands in SBUF; a
streamed product reads them from HBM meanwhile ([tensor engine](tensor-engine.md)).

@gemm

## Formats, sparsity, row tiles, transposes

Cycles of the same window, of one run over those of another, operands in SBUF. `moe`: four experts at once on four row
groups of the array, against one after another ([rates](tensor-engine.md#rates)).

@tensor

## Softmax

Rows on partitions, columns along them; from the first element that the vector engine reads to its last result. This
bound is elements over rate, no instruction less than 64 vector cycles; those on a column take fewer, so a window can be
below it ([vector engine](vector-engine.md)).

@softmax

## Rates of exp

In the whole core, from SBUF to SBUF. The 8 bytes a lane a cycle of the vector engine allow 4 elements of 16 bits, or 2
if either side is FP32; the scalar engine takes two of 16 or 8 bits on both sides, else one
([scalar engine](scalar-engine.md)).

@rates

## Attention

Flash attention on random Q, K, V. The bounding engine is the array: busy with moving beats, and with loads that
products of 64 columns cannot hide.

@attention

## A whole model

all-MiniLM-L6-v2, six layers, every operation on the core ([workloads](workloads.md)).

@minilm

## DMA

Share of the bandwidth of HBM over the whole run ([DMA](dma.md)).

@dma

## Link

Two ports with their lanes, saturated both ways, a round trip of 17 flits. n / (n + E R): n payload flits, E replays of
R flits ([link](link.md)).

@link

## Switch

16 ports x8 on RTL, input buffers of 128 flits, no speed-up, 20,000 flit times after 5,000, the least of seeds 1, 2, 3.
Throughput in flits a port a flit time; latency in link cycles, from first beat in to first beat out
([switch](switch.md#figures)).

@switch

## Flit codec

Encoder and decoder without a link around them, a beat in every cycle ([flit codec](flit-codec.md)).

@codec

## Speed of simulation

The whole core with the native array; speeds of other runs stand in their sections.

@speed

## Builds

The model of the whole core with the native array, nothing in the cache ([building](building.md)).

@builds

## Models of benches

A unit with its planted faults, everything that is kept being there ([building](building.md)).

@models

## The structural array

RTL down to the last adder ([array](tensor-array.md)).

@structural

## First use

What `make sim` runs.

@first-use

## What other commands measure

| what | command | page |
|---|---|---|
| how near functions are to the truth | `make accuracy` | [accuracy](accuracy.md) |
| links of every width, packets of every size | `python -m verif.checks.link_goodput` | [framing](framing.md) |
| switches of 20, 40 and 72 ports | `make regress` | [switch](switch.md#figures) |
| seconds of each stage of `make test` | `make test` | [verification](verification.md#levels-of-make-test) |
"""

_PLACE = re.compile(r"^@([\w-]+)$", re.M)
SECTIONS = tuple(_PLACE.findall(_TEXT))
"""Groups of sim.bench, in the order of the page."""


def page(rows: Sequence[Row]) -> str:
    """The page of these rows, each in the section of its group. ValueError: a group that has no section."""
    if strays := sorted({row.group for row in rows} - {*SECTIONS}):
        raise ValueError(f"docs/figures.md has no section for the groups {', '.join(strays)}")

    def section(place: re.Match[str]) -> str:
        of_group = [row for row in rows if row.group == place[1]]
        return f"`python -m sim.bench --only {place[1]}`\n\n{table(of_group).rstrip()}"

    return _PLACE.sub(section, _TEXT)


def taken_over(kept: Sequence[Row], new: Sequence[Row]) -> list[Row]:
    """`kept`, and in its places what was measured now; new figures behind. Wrong bits make no figure."""
    fresh = {row.name: row for row in new if row.match and row.group}
    old = [fresh.pop(row.name, row) for row in kept]
    return [*old, *fresh.values()]


def main(measured: Path | None = None, kept: Path = KEPT, to: Path = PAGE) -> int:
    """Take over and write. Returns 0."""
    rows = taken_over(read_rows(kept), read_rows(measured or build_root() / "bench.json"))
    text = page(rows)
    write_rows(kept, rows)
    to.write_text(text)
    print(to)
    return 0


if __name__ == "__main__":
    sys.exit(main())
