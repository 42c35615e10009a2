"""Processes of constants that run: a rewrite of converted Verilog.

Bits of a signal that always have the same value, beside others that a process works out, come out of the conversion as
a process without inputs, as in `always @* header[3:0] = 4'h0;`. Nothing ever triggers it, so the bits stay unknown in
one simulator and 0 in another, whatever the constant is. Every other process begins with a look at a register that
the conversion declares for that: it triggers when it gets its first value. So does this one then.
"""

import re

__all__ = ["run_constants"]

_TRIGGER = re.compile(r"^  reg (\\\$auto\$verilog_backend\S+)  = 0;$", re.M)
_CONSTANT = re.compile(r"^  always @\*\n(    \S+ ?(?:\[[^\]]*\] ?)?= \d+'[sbodh]+([0-9a-fA-F]+);\n)", re.M)


def _run(module: str, zeros: bool) -> str:
    """The same for one module. Errors: ValueError if it has such a process and no such register."""
    if not any(zeros or process[2].strip("0") for process in _CONSTANT.finditer(module)):
        return module
    trigger = _TRIGGER.search(module)
    if trigger is None:
        raise ValueError(f"a process of constants has nothing to start it in {module[:80]}")
    begin = f"  always @* begin\n    if ({trigger[1]} ) begin end\n"
    return _CONSTANT.sub(lambda process: f"{begin}{process[1]}  end\n", module)


def run_constants(text: str, *, zeros: bool) -> str:
    """`text`, as the conversion writes it, with a start for processes of constants; if not `zeros`, only in modules
    where one is not 0: a simulator of two states has zeros anyway."""
    return "".join(_run(part, zeros) for part in re.split(r"^(?=module )", text, flags=re.M))
