"""One sentence: what would make a run shorter, from its counters, its program and its configuration."""

import re
from fractions import Fraction

from firmware.program import Program
from rtl.contract import rates
from rtl.contract.config import Config
from rtl.contract.isa import Opcode, Queue
from rtl.contract.memmap import Space
from sim.report.bounding import Bounding, bounds
from sim.report.relief_settings import CLEARLY, NEAR
from sim.run.result import RunResult

__all__ = ["heaviest", "relief"]

FULL_BEATS = 0.75  # useful part of the tensor engine's beats, below which their shape is to blame
STALLED = 0.05  # share of a stall that is worth a word
SHORT_ROW_BYTES = 512
_WAITS = {
    "semaphore": "more buffers in flight would let the {engine} engine work while others do: it waits for them",
    "fetch": "fewer, longer instructions or a higher {issue.queue_depth} would hide their fetch from HBM",
    "load": "more moving columns for each stationary operand, up to {tensor.moving_max}, would hide its load",
    "sbuf": "operands in other banks or a higher {sbuf.banks} would end the refusals of SBUF",
    "psum": "operands in other banks or a higher {psum.banks} would end the refusals of PSUM",
    "fill": "fewer, longer instructions would fill the pipeline of the {engine} engine less often",
    "drain": "longer instructions, or other work behind them, would hide the draining of the {engine} engine",
    "clock": "a higher {clock} would shorten its beats",
    "unit": "longer groups, and reciprocals of columns only, would keep the {engine} engine from waiting for its units",
    "descriptor": "fewer, larger descriptors, released earlier or on more rings than {dma.rings}, would hide their way",
    "hbm_latency": "larger or earlier descriptors, a higher {dma.buffer_bytes} or a lower {hbm.latency_ns} would hide "
    "the latency of HBM",
    "hbm_bandwidth": "a higher {hbm.bytes_per_cycle} or narrower formats would end the waits for HBM",
    "commit": "work behind the last writes would hide the time to commit them, with {hbm.latency_ns}",
    "fault": "the kernel must be mended first: a queue has halted",
    "": "a longer problem would hide what comes before and after the work of the {engine} engine",
}
"""By stall cause of an engine; the last for an engine that nothing stalls."""
_FAST = {Opcode.TENSOR_COPY: 4, Opcode.TENSOR_SCALAR: 4, Opcode.MEMSET: 4, Opcode.TENSOR_TENSOR: 2,
         Opcode.TENSOR_REDUCE: 2}  # fmt: skip
"""Best rates: elements a lane a vector cycle, of 16-bit operands in SBUF."""
_MOVABLE = (Opcode.TENSOR_COPY, Opcode.TENSOR_SCALAR, Opcode.EXP, Opcode.RECIPROCAL)


def _tensor(cfg: Config, program: Program, result: RunResult, bound: Bounding) -> str:
    beats = cfg.tensor.rows * cfg.tensor.cols * program.pe_macs * result.engines["tensor"].busy
    useful = float(program.macs / beats) if beats else 0.0
    if useful < FULL_BEATS:
        return (
            f"operands that fill the array, {{tensor.rows}} and {{tensor.cols}}, would help: its beats use "
            f"{100 * useful:.0f} % of it"
        )
    if bound.stall_share >= STALLED:
        return _WAITS[bound.stall]
    return (
        "an array beyond {tensor.rows}, {tensor.cols} would help, for its beats are full; a higher {tensor.clock_mhz} "
        "makes cycles shorter, not fewer"
    )


def heaviest(program: Program) -> Opcode | None:
    """The vector engine's opcode with most cycles."""
    most = _heaviest(program, Queue.VECTOR)
    return most[0] if most else None


def _heaviest(program: Program, queue: Queue) -> tuple[Opcode, Fraction, bool] | None:
    """The opcode with most cycles of its engine, its mean rate, and whether PSUM is among its operands."""
    work: dict[Opcode, tuple[Fraction, int, bool]] = {}
    for i in program.queues.get(queue, []):
        cycles = rates.cycles(i.opcode, program.config, i.src0, i.src1, i.dst)
        psum = any(o is not None and o.space == Space.PSUM for o in (i.src0, i.src1, i.dst))
        before = work.get(i.opcode, (Fraction(0), 0, False))
        work[i.opcode] = before[0] + cycles, before[1] + rates.elements(i.src0, i.dst), before[2] or psum
    opcode = max(work, key=lambda o: work[o][0], default=None)
    if opcode is None or not work[opcode][0]:
        return None
    cycles, elements, psum = work[opcode]
    return opcode, elements / cycles, psum


def _vector(cfg: Config, program: Program, result: RunResult, bound: Bounding) -> str:
    most = _heaviest(program, Queue.VECTOR)
    if most is None:
        return "a higher {vector.clock_mhz} would shorten its beats"
    opcode, rate, psum = most
    name = opcode.name.lower()
    share = result.engines["scalar"].busy / max(1, result.cycles)
    move = f"some of {name} on the scalar engine, which is {100 * share:.0f} % busy, would relieve it"
    if opcode == Opcode.EXP and rate < cfg.vector.exp_rate:
        return (
            "operands of 16 bits at aligned offsets would let exp run {vector.exp_rate} a cycle, "
            f"not {float(rate):.3g}"
        )
    if opcode == Opcode.EXP and cfg.vector.exp_rate < 4:
        return "a higher {vector.exp_rate} would shorten exp, most of its work"
    if opcode in _MOVABLE and 2 * share < bound.share:
        return move
    if opcode == Opcode.RECIPROCAL:
        return "a reciprocal of columns, and a multiplication by it, would do: each takes 8 cycles an element"
    if rate < _FAST.get(opcode, 0) and not psum:
        return (
            f"operands of 16 bits in SBUF at aligned offsets would let {name} run {_FAST[opcode]} a cycle, "
            f"not {float(rate):.3g}"
        )
    return f"a higher {{vector.clock_mhz}} would shorten its beats, most of them {name}"


def _scalar(cfg: Config, program: Program, result: RunResult, bound: Bounding) -> str:
    share = result.engines["vector"].busy / max(1, result.cycles)
    if 2 * share < bound.share:
        return (
            f"exp, copies and scalings on the vector engine, which is {100 * share:.0f} % busy and moves up to 4 "
            "elements a cycle, would relieve it"
        )
    return "a higher {scalar.clock_mhz} would shorten its beats: it moves one element of a lane in each"


def _dma(cfg: Config, program: Program, result: RunResult, bound: Bounding) -> str:
    moved = sum(d.bytes for ring in program.rings for d in ring)
    rows = sum(d.bytes // d.row_bytes for ring in program.rings for d in ring)
    if bound.engine == "hbm":
        total = result.hbm_bytes_read + result.hbm_bytes_written
        fetched = result.hbm_bytes_read - program.hbm_read_bytes
        if 2 * fetched > total:
            share = 100 * fetched / total
            return f"fewer, longer instructions would relieve it: {share:.0f} % of the bytes are instructions"
        ports = " through wider ports, {hbm.port_bytes}" if _ports_are_near(cfg, result) else ""
        movers = ", with more movers, {dma.engines}," if _both(cfg, program, result) else ","
        return (
            f"a higher {{hbm.bytes_per_cycle}}{ports}{movers} operands that stay in SBUF, or narrower formats would "
            "relieve it"
        )
    if rows and moved / rows < SHORT_ROW_BYTES:
        return f"longer rows would relieve it: they have {moved / rows:.0f} bytes on average"
    if bound.stall_share >= STALLED:
        return _WAITS[bound.stall]
    if _both(cfg, program, result):
        return (
            "more movers, {dma.engines}, with a higher {hbm.bytes_per_cycle} would relieve it: HBM is as near its limit"
        )
    return "more movers, {dma.engines}, would relieve it"


def _both(cfg: Config, program: Program, result: RunResult) -> bool:
    """Whether HBM and the movers are so near each other's bound that one alone does not help."""
    ways = result.hbm_bytes_read, result.hbm_bytes_written
    limits = bounds(cfg, program, sum(ways), max(ways))
    low, high = sorted((limits["hbm"], limits["dma_port"]))
    return low > NEAR * high


def _ports_are_near(cfg: Config, result: RunResult) -> bool:
    """Whether what goes one way fills the ports to HBM nearly as much as all of it fills HBM."""
    ways = result.hbm_bytes_read, result.hbm_bytes_written
    return max(ways) * cfg.hbm.bytes_per_cycle > CLEARLY * sum(ways) * cfg.hbm.ports * cfg.hbm.port_bytes


_OF = {"tensor": _tensor, "vector": _vector, "scalar": _scalar, "dma": _dma, "hbm": _dma}


def relief(cfg: Config, program: Program, result: RunResult, bound: Bounding) -> str:
    """What would shorten the run most, in one sentence, with the configuration's keys and present values in it."""
    rule = _OF.get(bound.engine)
    text = rule(cfg, program, result, bound) if rule else _WAITS[bound.stall]
    values = {f"{part}.{key}": value for part, keys in cfg.as_dict().items() if isinstance(keys, dict)
              for key, value in keys.items()}  # fmt: skip
    text = text.replace("{engine}", bound.busiest).replace("{clock}", f"{{{bound.busiest}.clock_mhz}}")
    text = re.sub(r"\{(\S+?)\}", lambda key: f"{key[1]} (now {values[key[1]]})", text)
    return text[0].upper() + text[1:] + "."
