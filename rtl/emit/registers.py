"""Registers that keep their value cost nothing: a rewrite of converted Verilog.

A register comes out of the conversion as a combinational process for its next value, which begins with
the present one, and a clocked assignment. A simulator then copies the register twice in every cycle, and
once more for each level that depends on the reset input. Written as one clocked process the same
register is touched only where an enable lets it; on wide registers this halves the time of a core.
"""

import re

__all__ = ["merge_registers"]

_CLOCKED = re.compile(r"^  always @\(posedge (?P<clock>\S+) ?\)\n    (?P<q>\S+) <= (?P<next>\\\$\d+) ;\n", re.M)
_NEXT = re.compile(
    r"^  always @\* begin\n    if \(\\\$auto\S+ \) begin end\n(?P<body>(?:    .*\n)*?)  end\n",
    re.M,
)
_TARGET = re.compile(r"^( +)(\\\$\d+) ( ?\[[^\]]*\])? = ", re.M)


def _merge(module: str) -> str:
    """The same for one module."""
    clocked = {match["next"]: match for match in _CLOCKED.finditer(module)}
    if not clocked:
        return module
    uses: dict[str, int] = {}
    for name in re.findall(r"\\\$\d+(?= )", module):
        uses[name] = uses.get(name, 0) + 1

    cuts: list[tuple[int, int, str]] = []
    for process in _NEXT.finditer(module):
        body = process["body"]
        targets = [name for _, name, _ in _TARGET.findall(body)]
        name = targets[0] if targets else ""
        register = clocked.get(name)
        # the next value must be seen by the register alone: its declaration, the clocked
        # assignment, and the assignments of this process
        if register is None or set(targets) != {name} or uses[name] != len(targets) + 2:
            continue
        q = register["q"]
        body = re.sub(rf"\A    {re.escape(name)}  = {re.escape(q)} ?;\n", "", body)  # it keeps its value
        left = q.replace("\\", r"\\") + (" " if q.startswith("\\") else "")
        body = _TARGET.sub(rf"\g<1>{left}\g<3> <= ", body)
        clock = register["clock"] + (" " if register["clock"].startswith("\\") else "")
        cuts.append((register.start(), register.end(), ""))
        cuts.append((process.start(), process.end(), f"  always @(posedge {clock}) begin\n{body}  end\n"))
    for start, end, text in sorted(cuts, reverse=True):
        module = module[:start] + text + module[end:]
    return module


def merge_registers(text: str) -> str:
    """`text`, as the conversion writes it, with registers and their next values in one process.

    The registers, their resets and their initial values stay what they were. What does not look as
    expected is left alone.
    """
    return "".join(_merge(part) for part in re.split(r"^(?=module )", text, flags=re.M))
