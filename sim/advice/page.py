"""docs/advice.md from the table of rules: `python -m sim.advice.page`."""

from sim.advice.advise import RULES
from sim.advice.rule import Rule
from sim.toolchain import ROOT
from sim.whole_file import whole_file

__all__ = ["PAGE", "page"]

PAGE = ROOT / "docs" / "advice.md"

_HEAD = """# What would make a run shorter

`plexus run` tells the first three on the terminal, `report.json` has all of them (`advice`), and the page of a run too.
This table is made of the rules in `sim/advice/` by `python -m sim.advice.page`.

The path is the critical path of the [trace](trace.md): every cycle of the run in the state of the engine that
everything waited for meanwhile (`sim/trace/path_states.py`). With `--no-trace` it is the counters of the busiest engine
instead, and what only a trace can tell is not told. Advice is ordered by `share`, the part of the cycles that it
is about. That is no bound: a run gets shorter by less where something else is in the way then, and by more where what
is spared (loads, fetches, descriptors) was paid for with it. Nothing is concluded from a trace that was full before the
run had ended; then, too, the counters speak. A run that did not end by itself gets no advice.

| rule | applies when | advice | reads |
|---|---|---|---|
"""

_TAIL = """
## Each advice is true

`tests/system/test_advice.py` has for each rule a run to which it applies and one to which it does not, then does what
it says, and the run takes fewer cycles: two forms of a kernel (`verif/checks/advice_kernels.py`), or the fields that it
names. Those that need a model of their own are run by `make regress`, and so is every advice with fields on sixteen
runs behind four memories.

Settings are doubled, or halved, within their ranges. Ways to HBM are widened together until their bound is at most
three quarters of what it was (nine tenths where the ranges end), for less need not show: `plexus run gemm --config
small -p m=64 -p k=1024 -p n=1024 -p sparsity=4:16` takes 41,172 cycles, with twice the bandwidth and movers 39,766 (its
bound falls by 11 %), with ports of 128 bytes too 23,237. HBM's bound in the rules is that of each 256 cycles in turn:
what is read first and written afterwards shares no port.
"""


def _row(rule: Rule) -> str:
    when = rule.when.replace("{threshold}", f"{100 * rule.threshold:.3g} %")
    reads = ", ".join(key if key == "path" else f"`{key}`" for key in rule.reads)
    return f"| `{rule.name}` | {when} | {rule.advice} | {reads} |\n"


def page() -> str:
    """The text of docs/advice.md."""
    return _HEAD + "".join(_row(rule) for rule in RULES) + _TAIL


if __name__ == "__main__":
    with whole_file(PAGE) as place:
        place.write_text(page(), encoding="utf-8")
