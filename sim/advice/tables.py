"""A rule about tables of the scalar engine's functions: which loads of them a program could do without."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from rtl.contract.activation_tables import FIRST_TABLE_FUNCTION, image
from rtl.contract.config import Config
from rtl.contract.isa import Function, Opcode
from sim.advice.facts import Facts
from sim.advice.rule import Finding, Rule

__all__ = ["TABLE_RULE"]

_CODE = 0xFF  # of imm2, from bit 32 on


@dataclass(slots=True)
class _Table:
    """A table that was loaded: a LOAD_TABLE for each piece, the last one says what it holds. `used`: of these, those
    that work until the next one needs."""

    held: frozenset[Function]
    used: set[Function] = field(default_factory=set)


def _tables(facts: Facts) -> tuple[list[_Table], int]:
    """In their order, and the words of a partition that all of them take."""
    found: list[_Table] = []
    words = 0
    for i in facts.instructions("scalar"):
        if i.opcode == Opcode.LOAD_TABLE:
            words += i.src0.elements if i.src0 else 0
            if i.imm0:
                found.append(_Table(frozenset(f for f in Function if i.imm0 >> f & 1)))
        elif i.opcode == Opcode.ACTIVATION and found:
            function = Function(i.imm2 >> 32 & _CODE)
            if function >= FIRST_TABLE_FUNCTION:
                found[-1].used.add(function)
    return found, words


def _words(functions: Iterable[Function], cfg: Config) -> int:
    """Of a partition, that their table takes; 0 if it does not fit, or there are none."""
    try:
        return len(image([f.name.lower() for f in sorted(functions)], cfg.scalar.table_rows, cfg.partitions)[0])
    except ValueError:
        return 0


def _names(functions: Iterable[Function]) -> str:
    return ", ".join(f.name.lower() for f in sorted(functions))


def _better(tables: list[_Table], cfg: Config) -> tuple[str, int]:
    """What would load less, and its words; an empty text if nothing would."""
    used = {function for table in tables for function in table.used}
    idle = {function for table in tables for function in table.held} - used
    without = f" without {_names(idle)}, which nothing uses," if idle else ""
    together = _words(used, cfg)
    if together and len(tables) > 1:
        return f"one table of {_names(used)} in place of {len(tables)} loads", together
    if together and idle:
        return f"a table{without}", together
    kinds = {frozenset(table.used) for table in tables if table.used}
    if not together and len(kinds) < len(tables):
        words = sum(_words(kind, cfg) for kind in kinds)
        return f"work{without} in an order that loads {len(kinds)} tables, and not {len(tables)} by turns,", words
    return "", 0


def _find(facts: Facts, threshold: float) -> Finding | None:
    share = facts.work_share("scalar", "load_table")
    tables, words = _tables(facts)
    if share < threshold or not tables:
        return None
    text, fewer = _better(tables, facts.cfg)
    spared = share * (1 - fewer / words) if text and words else 0.0
    if spared < threshold:
        return None
    waits = f"everything waits {100 * share:.0f} % of the cycles for tables of the scalar engine"
    return Finding(spared, f"{text} would help: {waits}")


TABLE_RULE = Rule(
    name="table-loads",
    when="the path waits for tables of the scalar engine, and {threshold} of the cycles or more would be spared by one "
    "table of all functions that fit together, one without functions that nothing uses, or fewer turns of tables",
    threshold=0.1,
    reads=("engines.scalar.parts", "path"),
    advice="that table, or that order of work",
    find=_find,
)
