"""make accuracy: measures every function and writes docs/accuracy.md and docs/accuracy.svg.

python -m verif.accuracy.report
"""

import math
from multiprocessing import Pool
from pathlib import Path

from verif.accuracy.bf16 import Accuracy, measure, names
from verif.accuracy.dense import BOUNDS, TAILS, Dense, measure_dense
from verif.activations.truth import SIN_FAR, SIN_NEAR

__all__ = ["PAGE", "both", "page", "read_page"]

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = DOCS / "accuracy.md"
PICTURE = DOCS / "accuracy.svg"

_HEAD = """# Accuracy of functions

Every finite BF16 number but zero, and {dense:,} FP32 numbers of all binades and both signs (`verif/accuracy/dense.py`),
go through the golden model, which the hardware equals bit for bit (`tests/sim/test_benches.py`,
`tests/sim/test_eval.py`), and are held against the truth. `exp unit` is the vector engine's, all others are the scalar
engine's tables.

* "Correct": the result, rounded to BF16, is the BF16 number nearest to the truth. The truth is taken with more and more
  bits until its rounding is decided (`verif/activations/truth.py`).
* "Possible": how many an FP32 result would get right that is itself the nearest to the truth. What is missing from all
  inputs is lost by rounding twice: silu(x) of a tiny x is x/2 + x^2/4; where x/2 is the middle between two BF16
  numbers, the FP32 number nearest to the truth is that middle.
* Distances are in last places (ulp), of BF16 after the rounding to it and of FP32 before it; the largest are computed
  again by mpmath. "At" is the FP32 code of the dense input that has the largest one.
* "Bound" is what is promised for every FP32 input, subnormal ones too, and every infinity and zero gives its limit
  ([activation.md](activation.md)). `tests/unit/test_accuracy.py` holds it on numbers that the fit never saw.

Tails:

* {tails}
* sin crosses 0 at pi, the cubic that goes on beyond it at {root:.3f}, inside a segment each. There a result is judged
  as if it were not smaller than 2^{near} (|x| <= 4) and 2^{far} (beyond): the absolute bounds are {near_off:.1e} and
  {far_off:.1e}.

![FP32 distance by function](accuracy.svg)

    make accuracy

| function | BF16 inputs | correct | possible | BF16 ulp | FP32 ulp | FP32 ulp, dense | at | bound | monotone |
|---|---|---|---|---|---|---|---|---|---|
"""


def _tail(name: str, measured: float) -> str:
    low, high, bound = TAILS[name]
    return f"{name} between {low:g} and {high:g}: bound {bound} ulp, measured {measured:.3f}."


def _row(a: Accuracy, d: Dense) -> str:
    counts = " | ".join(f"{n} of {a.inputs}" for n in (a.correct, a.attainable))
    monotone = "" if a.monotone is None else "yes" if a.monotone else "no"
    dense = f"{d.fp32_ulp:.3f} | `{d.at:08x}` | {BOUNDS[a.name]}"
    return f"| {a.name} | {a.inputs} | {counts} | {a.bf16_ulp} | {a.fp32_ulp:.3f} | {dense} | {monotone} |"


def page(rows: list[tuple[Accuracy, Dense]]) -> str:
    """The Markdown page."""
    head = _HEAD.format(
        dense=min(d.inputs for _, d in rows),
        tails="\n* ".join(_tail(d.name, d.tail_ulp) for _, d in rows if d.tail_ulp is not None),
        root=math.pi + math.sqrt(6),
        near=int(math.log2(SIN_NEAR)),
        far=int(math.log2(SIN_FAR)),
        near_off=BOUNDS["sin"] * SIN_NEAR * 2.0**-23,
        far_off=BOUNDS["sin"] * SIN_FAR * 2.0**-23,
    )
    return head + "\n".join(_row(a, d) for a, d in rows) + "\n"


def read_page(text: str) -> dict[str, list[str]]:
    """Of a page, by function: the cells of its row."""
    rows = ([c.strip() for c in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| "))
    return {cells[0]: cells for cells in rows if len(cells) == 10 and cells[1].isdigit()}


def both(name: str) -> tuple[Accuracy, Dense]:
    """All figures of one function."""
    return measure(name), measure_dense(name)


def _picture(rows: list[tuple[Accuracy, Dense]]) -> str:
    """Two bars a function, as SVG: the largest FP32 distance on BF16 inputs and on dense ones."""
    high, left, step = max(d.fp32_ulp for _, d in rows), 110, 26
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="640" height="{len(rows) * step + 40}" font-size="12">',
        f'<text x="{left}" y="16">largest distance from the truth in FP32 places: BF16 inputs, FP32 inputs</text>',
    ]
    for i, (a, d) in enumerate(rows):
        y = 26 + i * step
        lines.append(f'<text x="{left - 8}" y="{y + 14}" text-anchor="end">{a.name}</text>')
        for at, value, colour in ((y, a.fp32_ulp, "#9db8d2"), (y + 10, d.fp32_ulp, "#3b6ea5")):
            wide = 440 * value / high
            lines.append(f'<rect x="{left}" y="{at}" width="{wide:.1f}" height="10" fill="{colour}"/>')
        lines.append(f'<text x="{left + 440 * d.fp32_ulp / high + 6:.1f}" y="{y + 19}">{d.fp32_ulp:.2f}</text>')
    return "\n".join([*lines, "</svg>"]) + "\n"


def main() -> None:
    """Measure all, print and write the page and the picture."""
    with Pool() as pool:
        rows = pool.map(both, names(), chunksize=1)
    PAGE.write_text(page(rows))
    PICTURE.write_text(_picture(rows))
    print("\n".join(_row(a, d) for a, d in rows))
    print(f"{PAGE.name} and {PICTURE.name} are written")


if __name__ == "__main__":
    main()
