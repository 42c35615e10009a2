"""Rules about the array: how full its beats are, what stands between them, how large it is."""

from rtl.contract.isa import Opcode
from sim.advice.facts import Facts
from sim.advice.rule import Finding, Rule

__all__ = ["ARRAY_RULES"]

_TURNS = "transpose"  # what kernels call a product with the identity


def _products(facts: Facts) -> list[tuple[int, int, int]]:
    """(beats, rows, columns of the array) of every product but transposes."""
    return [
        (i.dst.elements, i.src0.partition_count, i.dst.partition_count)
        for i in facts.instructions("tensor")
        if i.opcode == Opcode.MULTIPLY_MOVING and i.src0 and i.dst and i.part != _TURNS
    ]


def _product_beats(facts: Facts) -> int:
    """Busy cycles of the array without those of transposes."""
    turned = sum(i.dst.elements for i in facts.instructions("tensor") if i.part == _TURNS and i.dst)
    return max(0, facts.result.engines["tensor"].busy - turned)


def _filled(facts: Facts) -> float:
    """Useful part of the products' multiply-adds."""
    tensor = facts.cfg.tensor
    could = tensor.rows * tensor.cols * facts.program.pe_macs * _product_beats(facts)
    return float(facts.program.macs / could) if could else 0.0


def _unfilled(facts: Facts, threshold: float) -> Finding | None:
    busy = facts.result.engines["tensor"].busy
    share = facts.share("tensor", "busy") * _product_beats(facts) / max(1, busy)
    filled = _filled(facts)
    if not facts.program.macs or filled >= threshold or share < 0.05:
        return None
    works = _products(facts)
    beats = max(1, sum(n for n, _, _ in works))
    rows, columns = (sum(work[0] * work[side] for work in works) / beats for side in (1, 2))
    return Finding(
        share * (1 - filled),
        f"stationary operands that fill the array, {{tensor.rows}} and {{tensor.cols}}, would help: they have "
        f"{rows:.3g} rows and {columns:.3g} columns, and products use {100 * filled:.0f} % of it",
    )


def _exposed_load(facts: Facts, threshold: float) -> Finding | None:
    share = facts.share("tensor", "load")
    if share < threshold:
        return None
    works = [i.dst.elements for i in facts.instructions("tensor") if i.opcode == Opcode.MULTIPLY_MOVING and i.dst]
    columns = sum(works) / max(1, len(works))
    return Finding(
        share,
        "more moving columns for each stationary operand, up to {tensor.moving_max}, would hide its load: there are "
        f"{columns:.3g}, and the array waits for {100 * share:.0f} % of the cycles",
    )


def _transposes(facts: Facts, threshold: float) -> Finding | None:
    share = facts.work_share("tensor", _TURNS, "tensor_transpose")
    if share < threshold:
        return None
    return Finding(
        share,
        "an operand that lies in HBM as the array wants it, or transposes while it has other work, would spare the "
        f"{100 * share:.0f} % of the cycles in which everything waits for transposes",
    )


def _larger(facts: Facts, threshold: float) -> Finding | None:
    share = facts.share("tensor", "busy") * _product_beats(facts) / max(1, facts.result.engines["tensor"].busy)
    if share < threshold or _filled(facts) < 0.75:
        return None
    works = [i for i in facts.instructions("tensor") if i.opcode == Opcode.MULTIPLY_MOVING]
    loads = sum(i.opcode == Opcode.LOAD_STATIONARY for i in facts.instructions("tensor"))
    results = max(1, sum(not i.accumulate for i in works))  # begun; the others go on with one
    more = {"tensor.rows": 2 * results <= len(works), "tensor.cols": 2 * len(works) <= loads * results}
    found = {
        side: 2 * facts.value(side) for side in more if more[side] and 2 * facts.value(side) <= facts.cfg.partitions
    }
    if not found or facts.changed(found) is None:
        return None
    return Finding(
        share * (1 - 1 / 2 ** len(found)),
        f"an array beyond {', '.join(f'{{{side}}}' for side in found)} would help: its beats are full, "
        f"{100 * share:.0f} % of the cycles",
        found,
    )


ARRAY_RULES = (
    Rule(
        name="array-unfilled",
        when="useful multiply-adds are less than {threshold} of what products could do, and 5 % of the path are their "
        "beats",
        threshold=0.75,
        reads=("macs", "peak_macs_a_cycle", "engines.tensor.busy", "path"),
        advice="stationary operands of `tensor.rows` x `tensor.cols`",
        find=_unfilled,
    ),
    Rule(
        name="exposed-load",
        when="the path waits {threshold} of the cycles or more for stationary operands",
        threshold=0.05,
        reads=("engines.tensor.stall.load", "path"),
        advice="more moving columns for each stationary operand",
        find=_exposed_load,
    ),
    Rule(
        name="transposes",
        when="{threshold} of the path or more are transposes by the array; without a trace, of its busy cycles",
        threshold=0.05,
        reads=("engines.tensor.parts", "path"),
        advice="operands that lie in HBM as the array wants them, or transposes beside other work",
        find=_transposes,
    ),
    Rule(
        name="larger-array",
        when="{threshold} of the path or more are products that fill the array, and there are partitions for a "
        "larger array",
        threshold=0.5,
        reads=("engines.tensor.busy", "config_resolved.partitions", "path"),
        advice="`tensor.rows` and `tensor.cols` doubled",
        find=_larger,
    ),
)
