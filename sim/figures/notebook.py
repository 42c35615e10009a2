"""docs/plexus.ipynb with what its cells show now: python -m sim.figures.notebook

Cells run in one Python, in order, as in Jupyter: what is printed and the value of a last expression are kept, HTML of
those that have it. No package of Jupyter is needed, so a test runs the same cells.
"""

import ast
import contextlib
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sim.toolchain import ROOT
from sim.whole_file import whole_file

__all__ = ["NOTEBOOK", "main", "shown"]

NOTEBOOK = ROOT / "docs" / "plexus.ipynb"
Output = dict[str, Any]


def _value(value: Any, number: int) -> Output:
    """What a cell ends with, as text and, if it has it, as HTML."""
    data = {"text/plain": repr(value).splitlines(keepends=True)}
    if (html := getattr(value, "_repr_html_", None)) is not None:
        data = {"text/html": html().splitlines(keepends=True)} | data
    return {"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"}


def _run(source: str, names: dict[str, Any], number: int) -> list[Output]:
    """Outputs of one cell, in nbformat 4."""
    tree = ast.parse(source)
    last = tree.body[-1] if tree.body else None
    ends = ast.Expression(last.value) if isinstance(last, ast.Expr) else None
    del tree.body[len(tree.body) - (ends is not None) :]
    found: list[Output] = []
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(tree, f"cell {number}", "exec"), names)
        value = eval(compile(ends, f"cell {number}", "eval"), names) if ends else None
    if out.getvalue():
        found.append({"name": "stdout", "output_type": "stream", "text": out.getvalue().splitlines(keepends=True)})
    if value is not None:
        found.append(_value(value, number))
    return found


def shown(cells: list[dict[str, Any]]) -> Iterator[tuple[int, list[Output]]]:
    """Run all cells of code; index and outputs of each. Errors: those of the cells."""
    names: dict[str, Any] = {"__name__": "notebook"}
    number = 0
    for index, cell in enumerate(cells):
        if cell["cell_type"] == "code":
            number += 1
            yield index, _run("".join(cell["source"]), names, number)


def main(path: Path = NOTEBOOK) -> int:
    """Write the notebook anew."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    cells = notebook["cells"]
    for number, (index, outputs) in enumerate(shown(cells), start=1):
        cells[index] |= {"execution_count": number, "outputs": outputs}
    with whole_file(path) as part:
        part.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
