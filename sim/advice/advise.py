"""The table of rules on a run: what would make it shorter, the largest share of its cycles first."""

import re

from rtl.contract.roles import roles
from sim.advice.array import ARRAY_RULES
from sim.advice.elementwise import ELEMENTWISE_RULES
from sim.advice.facts import Facts
from sim.advice.movement import MOVEMENT_RULES
from sim.advice.rule import Advice, Finding, Rule
from sim.advice.waits import WAIT_RULES

__all__ = ["RULES", "advise", "no_advice"]

RULES: tuple[Rule, ...] = (*ARRAY_RULES, *ELEMENTWISE_RULES, *MOVEMENT_RULES, *WAIT_RULES)
"""Of equal shares the one further in front is told first."""


def _with_value(facts: Facts, key: str) -> str:
    """A field and its value; what only looks like one, in the name of a tile, is left as it is."""
    return f"{key} (now {facts.value(key)})" if key in roles(facts.cfg) else f"{{{key}}}"


def _sentence(facts: Facts, found: Finding) -> str:
    text = re.sub(r"\{(\w+\.\w+)\}", lambda key: _with_value(facts, key[1]), found.text)
    return text[0].upper() + text[1:] + "."


def advise(facts: Facts) -> list[Advice]:
    """What applies to a run that ended by itself; nothing for one that did not."""
    if facts.result.end != "done" or not facts.result.cycles:
        return []
    found = [(rule, finding) for rule in RULES if (finding := rule.find(facts, rule.threshold)) is not None]
    found.sort(key=lambda pair: -pair[1].share)
    return [
        Advice(
            rule=rule.name,
            text=_sentence(facts, finding),
            share=round(finding.share, 6),
            settings=tuple(f"{key}={value}" for key, value in finding.settings.items()),
        )
        for rule, finding in found
    ]


def no_advice(facts: Facts) -> str:
    """What is said of a run that no rule applies to."""
    if facts.result.end != "done":
        return "The kernel must be mended first: the run did not end by itself."
    busiest = facts.bound.busiest
    return f"No rule applies; a longer problem would hide what comes before and after the work of the {busiest} engine."
