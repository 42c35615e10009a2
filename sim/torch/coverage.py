"""The table of operators in docs/pytorch.md: python -m sim.torch.coverage --write."""

import sys
from pathlib import Path

from sim.torch.lowering.table import HOST, OPERATORS

__all__ = ["PAGE", "count", "table", "with_table"]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "pytorch.md"
_BEGIN, _END = "<!-- operators: begin -->", "<!-- operators: end -->"
_SHOWN = {"plexus.attention": "aten.scaled_dot_product_attention", "plexus.rms_norm": "aten.rms_norm"}


def _short(name: str) -> str:
    """Without its overload."""
    short = ".".join(name.split(".")[:2])
    return _SHOWN.get(short, short)


def count() -> int:
    """Operators, overloads of one taken together."""
    return len({_short(one.name) for one in OPERATORS.values()})


def table() -> str:
    """Markdown: operators that become the same are in one row."""
    rows: dict[tuple[str, str], list[str]] = {}
    for one in OPERATORS.values():
        names = rows.setdefault((one.becomes, one.bound.about), [])
        if (name := f"`{_short(one.name)}`") not in names:
            names.append(name)
    lines = [f"{count()} operators, overloads taken together:", "", "| operators | nodes | bound |", "|---|---|---|"]
    lines += [f"| {', '.join(names)} | {becomes} | {about} |" for (becomes, about), names in rows.items()]
    hosts: dict[str, list[str]] = {}
    for operator, why in HOST.items():
        if operator not in OPERATORS and (name := f"`{_short(str(operator))}`") not in hosts.setdefault(why, []):
            hosts[why].append(name)
    lines += [f"| {', '.join(names)} | the host's: {why} | |" for why, names in hosts.items()]
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
        sys.exit(f"{PAGE.name} is stale: python -m sim.torch.coverage --write")
