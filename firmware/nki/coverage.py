"""The table of calls in docs/nki.md: python -m firmware.nki.coverage --write."""

import sys
from pathlib import Path

from firmware.nki import modules
from firmware.nki.registry import CALLS, MISSING

__all__ = ["PAGE", "counts", "table", "with_table"]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "nki.md"
_BEGIN, _END = "<!-- calls: begin -->", "<!-- calls: end -->"
_KINDS = ("instruction", "lowered", "built")


def counts() -> dict[str, dict[str, int]]:
    """Calls of each kind, by module."""
    assert modules.__name__  # whoever imports it has filled CALLS
    return {
        module: {kind: sum(c.kind == kind for c in calls.values()) for kind in _KINDS}
        | {"missing": len(MISSING[module])}
        for module, calls in CALLS.items()
    }


def table() -> str:
    """Markdown: calls that become the same are in one row."""
    lines = ["| calls | kind | becomes |", "|---|---|---|"]
    for module, calls in CALLS.items():
        short = "nl" if module.endswith("language") else "nisa"
        rows: dict[tuple[str, str], list[str]] = {}
        for name, one in calls.items():
            rows.setdefault((one.kind, one.ours), []).append(f"`{short}.{name}`")
        for (kind, ours), names in sorted(rows.items(), key=lambda row: _KINDS.index(row[0][0])):
            lines.append(f"| {', '.join(names)} | {kind} | {ours} |")
        lines += [f"| `{short}.{name}` | missing | {why} |" for name, why in sorted(MISSING[module].items())]
    return "\n".join(lines)


def with_table(page: str) -> str:
    """The page with a fresh table."""
    before, rest = page.split(_BEGIN)
    _, after = rest.split(_END)
    return f"{before}{_BEGIN}\n{table()}\n{_END}{after}"


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    if "--write" in sys.argv:
        PAGE.write_text(with_table(text), encoding="utf-8")
    elif with_table(text) != text:
        sys.exit(f"{PAGE.name} is stale: python -m firmware.nki.coverage --write")
