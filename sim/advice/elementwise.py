"""Rules about the vector and the scalar engine: rates, who does what, clocks."""

from firmware.program import Instruction
from rtl.contract import rates
from rtl.contract.config import Config
from rtl.contract.isa import Function, Opcode
from sim.advice.facts import Facts
from sim.advice.rule import Finding, Rule
from sim.advice.tables import TABLE_RULE

__all__ = ["ELEMENTWISE_RULES"]

_FAST = {Opcode.TENSOR_COPY: 4, Opcode.TENSOR_SCALAR: 4, Opcode.MEMSET: 4, Opcode.TENSOR_TENSOR: 2,
         Opcode.TENSOR_REDUCE: 2}  # fmt: skip
"""Best rates: elements a lane a vector cycle, of 16-bit operands in SBUF."""
_MOVABLE = (Opcode.TENSOR_COPY, Opcode.TENSOR_SCALAR, Opcode.EXP, Opcode.RECIPROCAL)
"""What the scalar engine can do too."""
_ON_VECTOR = ("copy", "exp", "relu", "abs", "square")
"""Functions of the scalar engine that instructions of the vector engine do as well."""
_NOT_REDUCTIONS = ("load_table", "reciprocal")
_AT_WORK = ("busy", "clock")


def _computes(i: Instruction) -> bool:
    return i.opcode in (Opcode.ACTIVATION, Opcode.SCALAR_COPY, Opcode.SCALAR_AFFINE)


def _best(facts: Facts, opcode: Opcode) -> int:
    return facts.cfg.vector.exp_rate if opcode == Opcode.EXP else _FAST.get(opcode, 0)


def _wide_operands(facts: Facts, threshold: float) -> Finding | None:
    share, most = facts.share("vector", *_AT_WORK), facts.heaviest
    if share < threshold or most is None or most.psum or most.rate >= _best(facts, most.opcode):
        return None
    name, best = most.opcode.name.lower(), _best(facts, most.opcode)
    best_text = "{vector.exp_rate}" if most.opcode == Opcode.EXP else str(best)
    part = float(most.cycles / facts.program.vector_cycles)
    return Finding(
        share * part * (1 - most.rate / best),
        f"operands of 16 bits in SBUF at aligned offsets would let {name} run {best_text} a cycle, not {most.rate:.3g}",
    )


def _reciprocals(facts: Facts, threshold: float) -> Finding | None:
    share = facts.work_share("vector", "reciprocal")
    many = [i for i in facts.instructions("vector") if i.opcode == Opcode.RECIPROCAL and i.dst and i.dst.elements > 1]
    if share < threshold or not many:
        return None
    return Finding(
        share,
        "a reciprocal of one column, and a multiplication by it, would do where a row is divided by one number: "
        "each reciprocal takes 8 cycles an element",
    )


def _exp_cycles(facts: Facts, cfg: Config) -> float:
    exps = [i for i in facts.instructions("vector") if i.opcode == Opcode.EXP]
    return float(sum(rates.cycles(i.opcode, cfg, i.src0, i.src1, i.dst) for i in exps))


def _exp_rate(facts: Facts, threshold: float) -> Finding | None:
    share, most = facts.share("vector", *_AT_WORK), facts.heaviest
    if share < threshold or most is None or most.opcode != Opcode.EXP:
        return None
    settings = facts.doubled("vector.exp_rate")
    faster = facts.changed(settings) if settings else None
    if faster is None:
        return None
    spared = _exp_cycles(facts, facts.cfg) - _exp_cycles(facts, faster)
    if spared <= 0:
        return None
    share *= spared / float(facts.program.vector_cycles)
    return Finding(share, "a higher {vector.exp_rate} would shorten exp, most of its work", settings)


def _moved(facts: Facts, engine: str, other: str, part: float, ratio: float) -> tuple[float, float]:
    """How much of a part of an engine's work another one should take, so that both are busy as long, and the share of
    the run's cycles that this spares. `ratio`: how much longer the other takes for it."""
    busy, there = facts.share(engine, *_AT_WORK), facts.busy(other)
    work = busy * part
    fraction = min(1.0, max(0.0, busy - there) / (work * (1 + ratio))) if work else 0.0
    return fraction, work * fraction


def _to_scalar(facts: Facts, threshold: float) -> Finding | None:
    most = facts.heaviest
    if most is None or most.opcode not in _MOVABLE:
        return None
    part = float(most.cycles / facts.program.vector_cycles)
    # it does one element a cycle, two where all operands have 16 or 8 bits in SBUF: only these go above 2 on vector
    pace = 2 if most.opcode in (Opcode.TENSOR_COPY, Opcode.TENSOR_SCALAR) and most.rate > 2 else 1
    ratio = float(most.rate) / pace * facts.cfg.vector.clock_mhz / facts.cfg.scalar.clock_mhz
    fraction, spared = _moved(facts, "vector", "scalar", part, ratio)
    if spared < threshold or ratio > 2:
        return None
    return Finding(
        spared,
        f"about {100 * fraction:.0f} % of {most.opcode.name.lower()} on the scalar engine, which is "
        f"{100 * facts.busy('scalar'):.0f} % busy, would relieve the vector engine",
    )


def _function(i: Instruction) -> str:
    """Of an activation; copies and affine instructions count as the function copy."""
    return Function(i.imm2 >> 32 & 0xFF).name.lower()


def _to_vector(facts: Facts, threshold: float) -> Finding | None:
    work = [(_function(i), i.src0.elements) for i in facts.instructions("scalar") if _computes(i) and i.src0]
    total = sum(elements for _, elements in work)
    mine = [(name, elements) for name, elements in work if name in _ON_VECTOR]
    if not mine:
        return None
    busy = facts.share("scalar", *_AT_WORK)
    applied = max(0.0, busy - facts.work_share("scalar", "load_table")) / busy if busy else 0.0
    ratio = facts.cfg.scalar.clock_mhz / facts.cfg.vector.clock_mhz  # about as many elements a cycle
    part = applied * sum(elements for _, elements in mine) / total
    fraction, spared = _moved(facts, "scalar", "vector", part, ratio)
    if spared < threshold:
        return None
    heaviest = max({name for name, _ in mine}, key=lambda name: sum(n for other, n in mine if other == name))
    return Finding(
        spared,
        f"about {100 * fraction:.0f} % of {heaviest} on the vector engine, which is "
        f"{100 * facts.busy('vector'):.0f} % busy, would relieve the scalar engine",
    )


def _clock(facts: Facts, threshold: float) -> Finding | None:
    found = [(facts.share(engine, *_AT_WORK, "unit"), engine) for engine in ("vector", "scalar")]
    for share, engine in sorted(found, reverse=True):
        key = f"{engine}.clock_mhz"
        faster = min(2 * facts.value(key), facts.cfg.tensor.clock_mhz)
        if share >= threshold and faster > facts.value(key):
            return Finding(
                share * (1 - facts.value(key) / faster), f"a higher {{{key}}} would shorten its beats", {key: faster}
            )
    return None


def _units(facts: Facts, threshold: float) -> Finding | None:
    found: list[tuple[float, str, str]] = []
    for engine in ("vector", "scalar"):
        parts = facts.result.engines[engine].parts.get("unit", {})
        short = {name: cycles for name, cycles in parts.items() if name not in _NOT_REDUCTIONS}
        if short:
            share = facts.share(engine, "unit") * sum(short.values()) / sum(parts.values())
            found.append((share, engine, max(short, key=lambda name: short[name])))
    share, engine, name = max(found, default=(0.0, "", ""))
    if share < threshold:
        return None
    return Finding(
        share,
        f"longer rows in {name} would spare the {engine} engine {100 * share:.0f} % of the cycles, in which it waits "
        "for the ends of reductions",
    )


ELEMENTWISE_RULES = (
    Rule(
        name="wide-operands",
        when="the path has {threshold} of the cycles or more in the vector engine, and its heaviest opcode, without an "
        "operand in PSUM, is slower than 16-bit operands would let it be",
        threshold=0.25,
        reads=("engines.vector.busy", "engines.vector.parts", "path"),
        advice="operands of 16 bits in SBUF at aligned offsets",
        find=_wide_operands,
    ),
    Rule(
        name="reciprocals",
        when="{threshold} of the path or more are reciprocals of more than a column",
        threshold=0.1,
        reads=("engines.vector.parts", "path"),
        advice="a reciprocal of one column and a multiplication by it",
        find=_reciprocals,
    ),
    Rule(
        name="vector-to-scalar",
        when="the scalar engine can do the vector engine's heaviest opcode in at most twice the time, and taking "
        "some of it, so that both are busy as long, spares {threshold} of the path or more",
        threshold=0.1,
        reads=("engines.vector.busy", "engines.scalar.busy", "path"),
        advice="some of that opcode on the scalar engine",
        find=_to_scalar,
    ),
    Rule(
        name="scalar-to-vector",
        when="the vector engine can do some of the scalar engine's functions (copy, exp, relu, abs, square), and "
        "taking some, so that both are busy as long, spares {threshold} of the path or more",
        threshold=0.1,
        reads=("engines.scalar.busy", "engines.vector.busy", "path"),
        advice="some of them on the vector engine",
        find=_to_vector,
    ),
    Rule(
        name="reduction-units",
        when="the path waits {threshold} of the cycles or more for the ends of reductions",
        threshold=0.1,
        reads=("engines.*.stall.unit", "engines.*.parts", "path"),
        advice="longer rows to reduce",
        find=_units,
    ),
    TABLE_RULE,
    Rule(
        name="exp-rate",
        when="the path has {threshold} of the cycles or more in the vector engine, and its heaviest opcode "
        "is exp, which a higher rate would shorten",
        threshold=0.25,
        reads=("engines.vector.busy", "engines.vector.parts", "path"),
        advice="`vector.exp_rate` doubled",
        find=_exp_rate,
    ),
    Rule(
        name="engine-clock",
        when="the path has {threshold} of the cycles or more in an engine whose clock is slower than the array's",
        threshold=0.25,
        reads=("engines.vector.busy", "engines.scalar.busy", "path"),
        advice="`vector.clock_mhz` or `scalar.clock_mhz` doubled, up to `tensor.clock_mhz`",
        find=_clock,
    ),
)
