"""make accuracy: measures every function and writes docs/accuracy.md and docs/accuracy.svg.

python -m verif.accuracy.report
"""

from multiprocessing import Pool
from pathlib import Path

from verif.accuracy.bf16 import Accuracy, measure, names

__all__ = ["PAGE", "page", "read_page"]

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = DOCS / "accuracy.md"
PICTURE = DOCS / "accuracy.svg"

_HEAD = """# Accuracy of functions

Every BF16 number inside the documented range goes through the golden model, which the hardware equals bit for bit
(`tests/sim/test_numeric.py`), and is held against mpmath. "Correct": the result, rounded to BF16, is the BF16 number
nearest to the truth. Distances are in last places, of BF16 after that rounding and of FP32 before it. `exp unit` is
the vector engine's, all others are the scalar engine's tables.

![FP32 distance by function](accuracy.svg)

    make accuracy

| function | range of x | inputs | correct | BF16 ulp | FP32 ulp | monotone |
|---|---|---|---|---|---|---|
"""


def _row(a: Accuracy) -> str:
    share = f"{100 * a.correct / a.inputs:.4f} %"
    monotone = "" if a.monotone is None else "yes" if a.monotone else "no"
    return f"| {a.name} | {a.range} | {a.inputs} | {share} | {a.bf16_ulp} | {a.fp32_ulp:.3f} | {monotone} |"


def page(rows: list[Accuracy]) -> str:
    """The Markdown page."""
    return _HEAD + "\n".join(_row(a) for a in rows) + "\n"


def read_page(text: str) -> dict[str, tuple[float, int, float]]:
    """Of a page, by function: share of correct results in percent, BF16 ulp, FP32 ulp."""
    found: dict[str, tuple[float, int, float]] = {}
    for line in text.splitlines():
        cells = [c.strip() for c in line.strip("|").split("|")]
        if len(cells) == 7 and cells[2].isdigit():
            found[cells[0]] = float(cells[3].rstrip(" %")), int(cells[4]), float(cells[5])
    return found


def _picture(rows: list[Accuracy]) -> str:
    """Bars of the FP32 distance, one a function, as SVG."""
    high, left, step = max(a.fp32_ulp for a in rows), 110, 22
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="640" height="{len(rows) * step + 40}" font-size="12">',
        f'<text x="{left}" y="16">largest distance from the truth on BF16 inputs, in FP32 last places</text>',
    ]
    for i, a in enumerate(rows):
        y, wide = 28 + i * step, 440 * a.fp32_ulp / high
        lines += [
            f'<text x="{left - 8}" y="{y + 12}" text-anchor="end">{a.name}</text>',
            f'<rect x="{left}" y="{y}" width="{wide:.1f}" height="15" fill="#3b6ea5"/>',
            f'<text x="{left + wide + 6:.1f}" y="{y + 12}">{a.fp32_ulp:.2f}</text>',
        ]
    return "\n".join([*lines, "</svg>"]) + "\n"


def main() -> None:
    """Measure all, print and write the page and the picture."""
    with Pool() as pool:
        rows = pool.map(measure, names(), chunksize=1)
    PAGE.write_text(page(rows))
    PICTURE.write_text(_picture(rows))
    print("\n".join(_row(a) for a in rows))
    print(f"{PAGE.name} and {PICTURE.name} are written")


if __name__ == "__main__":
    main()
