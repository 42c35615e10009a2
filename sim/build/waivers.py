"""Classes of Verilator's warnings that emitted Verilog may have, each with the reason, as a control file beside it."""

from sim.errors import PlexusError

__all__ = ["WAIVED", "waiver_text"]

WAIVED = {
    "DECLFILENAME": "one file holds all modules of a design",
    "VARHIDDEN": "a signal inside a module may be named like the instance of another: both names come from the source",
    "UNUSEDSIGNAL": "wires keep the names that the source gives them, for waves, and parts of words that nobody needs",
    "UNUSEDPARAM": "a cell has the parameters of all its forms",
    "WIDTHEXPAND": "Amaranth widens operands by its own rules, which Verilog's context rules repeat: nothing is lost",
    "WIDTHTRUNC": "a word as a condition, and assignments whose widths Amaranth has settled before",
    "PROCASSINIT": "a register has the value it powers up with, and a reset to the same",
    "CMPCONST": "a limit may be the largest number that fits, at this configuration",
    "UNSIGNED": "a limit may be 0, at this configuration",
    "CASEINCOMPLETE": "every process gives its targets a value before its first case",
    "SYMRSVDWORD": "a port may be named like a word of C++: Verilator renames it in its own C++ alone",
    "CASEOVERLAP": "the first pattern that fits wins, as in Amaranth",
}
"""What is not here, such as a latch, a loop, a pin left open or two drivers, fails."""


def waiver_text(file: str) -> str:
    """The control file for the emitted `file`: give it to Verilator in front of that."""
    if '"' in file:
        raise PlexusError(f"a file of Verilog has no quotation mark in its name, and {file} has")
    lines = ["`verilator_config"]
    for name, reason in WAIVED.items():
        lines += [f"// {reason}", f'lint_off -rule {name} -file "*{file}"']
    return "\n".join(lines) + "\n"
