"""One queue: order, waits, updates after the end, faults that halt, with an engine of random speed."""

from itertools import combinations
from typing import Any

import cocotb
from cocotb.triggers import FallingEdge

from rtl.base.dma_port import CAUSE_BITS, COUNT_BITS
from rtl.contract.isa import INSTRUCTION, Cause, Queue
from rtl.issue.queue import QUEUE_STATUS, has_engine
from verif.agents.bench import manifest
from verif.agents.opened import opened
from verif.agents.stall import STYLES, styled
from verif.bench import Run, noticed_by
from verif.benches.issue.expected import Expected
from verif.benches.issue.queue_driver import COVERAGE, QueueBench
from verif.benches.issue.words import legal, pack
from verif.golden.issue import check

_TENSOR, _SYNC = {"queue": 0}, {"queue": 4}

_PLANTED = (
    "only one of two conditions has to hold",
    "the semaphore changes at dispatch, not at the end",
    "a done that comes while an update waits is lost",
    "no update for an instruction without an engine",
    "an issue is told one cycle late",
    *noticed_by(
        "halts_at_what_the_engine_fails_at/program=0",
        "a command that failed retires like others",
        "instructions behind one that failed retire",
    ),
    *noticed_by(
        "runs_in_order_and_updates_at_the_end/style=half",
        "GE compares with greater",
    ),
    *noticed_by(
        "halts_at_the_first_fault/program=0",
        "a fault does not halt the queue",
    ),
    *noticed_by(
        "halts_at_the_first_fault/program=1",
        "the faulty instruction is dispatched to the engine too",
    ),
)

_HAS_ENGINE = has_engine(manifest().config, Queue(manifest().options["queue"]))

RUNS = (Run("issue_queue", options=_TENSOR, faults=_PLANTED), Run("issue_queue", options=_SYNC, regress=True))


@cocotb.test(timeout_time=3, timeout_unit="ms")
@cocotb.parametrize(style=STYLES)
async def runs_in_order_and_updates_at_the_end(dut: Any, style: str) -> None:
    """A long program without faults."""
    bench = QueueBench(dut)
    bench.random_program(120, 0)
    bench.update_stall = styled(style, bench.rng)
    bench.engine_stall = styled(style, bench.rng)
    bench.release_stall = styled(style, bench.rng)
    bench.source.stall = styled(style, bench.rng)
    bench.speed = {"never": 4, "rarely": 60}.get(style, 25)
    await bench.start()
    await bench.run()
    assert [r for r, _ in bench.records] == list(range(120))
    bench.check_end()


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(program=range(16))
async def halts_at_the_first_fault(dut: Any, program: int) -> None:
    """Programs that go wrong somewhere; what was dispatched before still ends."""
    bench = QueueBench(dut)
    bench.random_program(25, 0.1)
    if program % 4 == 0:  # each kind of fault at least once
        bench.program = [e for e in bench.program if not e.cause]
        bad = {"opcode": 0, "wait0": 1, "wait0_semaphore": 999} if program % 8 else {"opcode": 1, "imm0": 99, "imm1": 1}
        word = pack(bad)
        bench.program.append(Expected(word, INSTRUCTION.unpack(word), *check(word, bench.cfg, bench.queue)))
        bench.random_program(5, 0)
    bench.speed = 40
    await bench.start()
    await bench.run()
    bench.check_end()
    fault = bench.fault_at()
    if fault is not None:
        assert bench.next <= fault and len(bench.records) == fault + 1
        COVERAGE.when(fault > 3, "fault_behind_running_work")


@cocotb.test(timeout_time=1, timeout_unit="ms", skip=not _HAS_ENGINE)
@cocotb.parametrize(program=range(6))
async def halts_at_what_the_engine_fails_at(dut: Any, program: int) -> None:
    """Some instructions fail in the engine; the first of them is the last record, whatever was dispatched."""
    bench = QueueBench(dut)
    bench.random_program(30, 0.05 if program > 3 else 0)
    own = [n for n, e in enumerate(bench.program) if e.to_engine and not e.cause]
    for n in bench.rng.choice(own, min(len(own), 1 + program % 3), replace=False):
        bench.program[n].failure = int(bench.rng.choice([Cause.BANK_CONFLICT, 1 << bench.rng.integers(8)]))
    first = min(n for n, e in enumerate(bench.program) if e.failure or e.cause)
    bench.speed = 40
    bench.update_stall = styled(("never", "rarely")[program % 2], bench.rng)
    await bench.start()
    await bench.run()
    status = opened(QUEUE_STATUS)(int(dut.status.value))
    e = bench.program[first]
    assert [r for r, _ in bench.records] == list(range(first + 1))
    assert (status.cause, status.sequence, status.retired) == (e.failure or e.cause, first, first)
    assert status.halted and not status.finished and status.address == (0 if e.failure else e.address)
    COVERAGE.when(e.failure and bench.next > first + 1, "engine_fault")


@cocotb.test(timeout_time=3, timeout_unit="ms")
async def reports_a_word_that_cannot_be_had(dut: Any) -> None:
    """The fetch fault becomes a record behind all words that came, with any cause and address."""
    bench = QueueBench(dut)
    await bench.start()

    async def break_off(cause: int, address: int) -> None:
        while bench.source.sent < 10:
            await bench.edge
        await FallingEdge(bench.clk)
        dut.fetch_cause.value, dut.fetch_address.value = cause, address

    for cause in (int(Cause.BUS_ERROR), *(1 << bit for bit in range(CAUSE_BITS))):
        bench.forget()
        bench.random_program(10, 0)
        address = int.from_bytes(bench.rng.bytes(8), "little")
        dut.fetch_cause.value = 0
        cocotb.start_soon(break_off(cause, address))
        await bench.begin(12)
        while len(bench.records) < 11:
            await bench.cycle()
        for _ in range(50):
            await bench.cycle()
        bench.check_end(missing=cause, at=address)
    COVERAGE.hit("fetch_fault")
    dut.fetch_cause.value = 0


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def waits_for_more_until_all_have_come(dut: Any) -> None:
    """A program is finished when all that came has retired and no more comes; a count differs in any bit or two."""
    bench = QueueBench(dut)
    await bench.start()
    bench.speed = 4
    for bit in range(2, COUNT_BITS):
        bench.forget()
        bench.random_program(3, 0)
        await bench.run(count=3 + (1 << bit))
    bench.forget()
    bench.random_program(3, 0)
    await bench.run()
    told = opened(QUEUE_STATUS)
    for bits in [(bit,) for bit in range(COUNT_BITS)] + list(combinations(range(COUNT_BITS), 2)):
        await FallingEdge(bench.clk)
        dut.sent.value, dut.ended.value = 3 ^ sum(1 << bit for bit in bits), 1
        await bench.edge
        status = told(int(dut.status.value))
        assert not status.finished and status.fetch and not int(dut.drained.value), f"bits {bits}"


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def counts_on(dut: Any) -> None:
    """Numbers of more bits than other programs need, of the instructions and of the one that faults."""
    bench = QueueBench(dut)
    await bench.start()
    for last in ((), ({"opcode": 99},)):
        bench.forget()
        for f in [*[{"opcode": 0}] * 1023, *last]:
            word = pack(f)
            bench.program.append(Expected(word, INSTRUCTION.unpack(word), *check(word, bench.cfg, bench.queue)))
        await bench.run()
        bench.check_end()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def keeps_the_rate(dut: Any) -> None:
    """At least an instruction in 8 cycles when nothing waits and the engine takes all."""
    bench = QueueBench(dut)
    for _ in range(64):
        word = pack(legal(bench.rng, bench.cfg, bench.queue, {Queue.TENSOR: 17, Queue.VECTOR: 32}.get(bench.queue, 0)))
        bench.program.append(Expected(word, INSTRUCTION.unpack(word), Cause.NONE, 0))
    bench.speed = 1
    await bench.start()
    await bench.run()
    assert bench.previous_dispatch < 64 * 8 + 10, f"64 instructions took {bench.previous_dispatch} cycles"
    COVERAGE.require_all()
