"""The table of code coverage as one HTML page that needs nothing beside it."""

import html
from collections.abc import Mapping, Sequence

from verif.checks.code_coverage.holes import LIMIT_PERCENT, MEASURES, Row
from verif.checks.code_coverage.units import RULES

__all__ = ["page"]

_SHOWN = 300
"""Holes of a unit on the page; all are in the JSON file beside it."""

_STYLE = """
body { font: 14px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em; color: #1b1f24; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; padding: .25em .6em; vertical-align: top; }
tr { border-bottom: 1px solid #d8dee4; } td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
.low { background: #ffe3e0; } code { font-size: 12px; } li { margin: .1em 0; } summary { cursor: pointer; }
.reason { color: #57606a; margin: .2em 0; }
@media (prefers-color-scheme: dark) { body { background: #16191d; color: #d5dae0; } .low { background: #5a2320; }
tr { border-color: #343a41; } .reason { color: #9aa4af; } }
"""


def _cell(row: Row, measure: str) -> str:
    if not row.of[measure]:
        return '<td class="n">-</td><td class="n">0</td>'
    low = " low" if row.low(measure) else ""
    return f'<td class="n{low}">{row.percent(measure):.1f}</td><td class="n">{row.hit[measure]}/{row.of[measure]}</td>'


def _unit(row: Row, reasons: Mapping[str, str]) -> str:
    inner = "".join(
        f'<p class="reason">{measure}: {html.escape(reason)}</p>' for measure, reason in sorted(reasons.items())
    )
    if row.holes:
        listed = "".join(
            f"<li><code>{html.escape(place)}</code> {html.escape(words)}</li>" for place, words in row.holes[:_SHOWN]
        )
        more = f"<p>and {len(row.holes) - _SHOWN} more, in index.json</p>" if len(row.holes) > _SHOWN else ""
        inner += f"<details><summary>{len(row.holes)} holes</summary><ul>{listed}</ul>{more}</details>"
    left = ", ".join(f"{count} {rule}" for rule, count in row.left_out.items())
    name = f"<td><code>{html.escape(row.unit)}</code>{inner}</td>"
    return f"<tr>{name}{''.join(_cell(row, m) for m in MEASURES)}<td>{left}</td></tr>"


def _functional(bins: Mapping[str, Mapping[str, int]]) -> str:
    rows = []
    for name, hits in sorted(bins.items()):
        missing = ", ".join(b for b, count in hits.items() if not count)
        hit = sum(count > 0 for count in hits.values())
        cells = f'<td class="n">{hit} of {len(hits)}</td><td class="n">{min(hits.values(), default=0):,}</td>'
        rows.append(f"<tr><td><code>{html.escape(name)}</code></td>{cells}<td>{html.escape(missing)}</td></tr>")
    head = '<tr><th>unit</th><th class="n">bins hit</th><th class="n">fewest hits</th><th>never hit</th></tr>'
    return f"<table>{head}{''.join(rows)}</table>"


def page(
    rows: Sequence[Row],
    reasons: Mapping[str, Mapping[str, str]],
    absent: Sequence[str],
    bins: Mapping[str, Mapping[str, int]],
    wrong: Sequence[str],
) -> str:
    """The whole page. `bins`: functional coverage, hits by unit and bin."""
    rules = "".join(f"<li><b>{name}</b>: {why}</li>" for name, why in RULES.items())
    head = "".join(f'<th class="n">{m} %</th><th class="n">points</th>' for m in MEASURES)
    units = "".join(_unit(row, reasons.get(row.unit, {})) for row in rows)
    unmet = "".join(
        f"<li><code>{name}</code> {html.escape(reasons.get(name, {}).get('unmet', ''))}</li>" for name in absent
    )
    errors = "".join(f"<li>{html.escape(text)}</li>" for text in wrong)
    return f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Plexus: coverage</title><style>{_STYLE}</style>
<h1>Coverage of the RTL</h1>
<p>Lines (branches, cases, both sides of a multiplexer) and toggles (each bit, both ways) of the product's Verilog,
in all runs of benches without a planted fault. A row is a file of Python whose components were in a model; the worst
comes first. Below {LIMIT_PERCENT} % a reason is given. Percentages are rounded down.</p>
{f"<h2>To be settled</h2><ul>{errors}</ul>" if errors else ""}
<table><tr><th>unit</th>{head}<th>left out</th></tr>{units}</table>
{f"<h2>In no model</h2><ul>{unmet}</ul>" if unmet else ""}
<h2>Left out, by rule</h2><ul>{rules}</ul>
<h2>Functional coverage</h2>{_functional(bins)}
</html>
"""
