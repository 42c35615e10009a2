"""The whole issue unit: programs over all queues and rings, from registers and HBM to registers."""

from typing import Any

import cocotb
from cocotb.triggers import First

from rtl.base.dma_port import ENDPOINT_STATUS, SEMAPHORE_UPDATE
from rtl.contract.isa import Cause, Update, Wait
from rtl.contract.memmap import Control, EndpointRegister, QueueRegister, RingRegister
from rtl.contract.timing import STALLS, Engine
from verif.agents.stall import randomly
from verif.bench import Run, noticed_by
from verif.benches.issue.issue_driver import COVERAGE, RING_FAULT, IssueBench
from verif.benches.issue.programs import Node, Program, random_program

_FAULTS = (
    *noticed_by(
        "faults_of_rings_are_seen", "done does not wait for the DMA", "the fault of a queue is forgotten by the run"
    ),
    *noticed_by("an_empty_program_is_done_at_once", "a control register is read a cycle late"),
)
"""Faults that make every test time out: one test is enough to notice."""

_PLANTED = (
    "a draining engine counts as idle",
    "the state of an engine is told as the one beside it",
    "an engine that holds an instruction counts while the queue waits",
    "idle cycles after a busy one are not counted",
    "a window begins with its last beat",
    "a window ends with its first result",
    "bytes of HBM are counted in 12 bits",
    "cycles that wait for a unit are parts of busy",
    "what the last program counted stays",
    "a counter of parts goes on from that of the opcode before",
    *noticed_by(
        "semaphores_stay_or_are_cleared",
        "a start that keeps semaphores clears them",
        "semaphores are cleared while a program runs",
    ),
    *noticed_by(
        "registers_keep_their_place",
        "counters of the endpoint stand in each other's place",
    ),
    *noticed_by(
        "a_fault_halts_its_queue_alone/queue=0",
        "the sequence number is not in the fault register",
    ),
    *noticed_by(
        "a_trigger_beyond_its_ring_releases_nothing",
        "more descriptors than the ring has may be released",
        "a trigger that is refused counts",
    ),
)

RUNS = (Run("issue", faults=(*_FAULTS, *_PLANTED)),)


@cocotb.test(timeout_time=3, timeout_unit="ms")
async def runs_programs_that_wait_for_each_other(dut: Any) -> None:
    """Random programs in a row, long and short: all retires, in order, nothing before what it waits for."""
    bench = IssueBench(dut)
    bench.memory.stall = randomly(bench.rng, 0.3)
    await bench.start()
    for number, length in enumerate((120, 120, 120, 10, 10, 4)):
        program = random_program(bench.rng, bench.cfg, length)
        COVERAGE.when(any(n.descriptor and n.signal for n in program.nodes), "descriptor_signal")
        bench.memory.latency = int(bench.rng.integers(2, 80))
        keep = number % 2 == 1
        if keep:
            await bench.host.write(Control.CLEAR, 1)
        regions = await bench.run(program, slow=int(bench.rng.integers(4, 30)), keep=keep)
        if length > 100:
            await bench.cycles(20)
            await bench.refuse(200)
        await bench.until("done")
        status, running, core = await bench.host.read_all([Control.STATUS, Control.RUN, Control.CORE_ID])
        assert (status, running, core) == (1, 0, bench.cores)
        await bench.counters()
        await bench.results(regions)
        COVERAGE.when(number, "second_program")


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def an_empty_program_is_done_at_once(dut: Any) -> None:
    """All counts 0, which is what they are after reset."""
    bench = IssueBench(dut)
    await bench.start()
    await bench.host.write(Control.RUN, 1)
    await bench.until("done", 60)
    assert bench.memory.requests == []
    await bench.counters()
    COVERAGE.hit("empty_program")


@cocotb.test(timeout_time=3, timeout_unit="ms")
@cocotb.parametrize(queue=list(range(5)))
async def a_fault_halts_its_queue_alone(dut: Any, queue: int) -> None:
    """One queue meets an illegal instruction; the others run as far as they can; nothing is reported twice."""
    bench = IssueBench(dut)
    await bench.start()
    program = random_program(bench.rng, bench.cfg, 80)
    while not program.queues[queue]:
        program = random_program(bench.rng, bench.cfg, 80)
    victim = program.queues[queue][int(bench.rng.integers(len(program.queues[queue])))]
    # The wrong instruction does not wait, so that it is reached whatever the others do.
    for node in program.queues[queue][: victim.number + 1]:
        node.after.clear()
        node.fields |= {"wait0": 0, "wait1": 0}
    victim.fields |= {"opcode": 77}
    regions = await bench.run(program)
    await bench.until("fault")
    await bench.quiet()
    base = Control.QUEUE + queue * 0x100
    offsets = (QueueRegister.ISSUED, QueueRegister.RETIRED, QueueRegister.FAULT)
    fault = int(Cause.ILLEGAL_OPCODE) | victim.number << 16
    assert await bench.host.read_all([base + o for o in offsets]) == [victim.number, victim.number, fault]
    assert bench.records[queue][-1] == (victim.number, Cause.ILLEGAL_OPCODE)
    assert await bench.host.read(Control.STATUS) == 2 and dut.done.value == 0
    for q in range(5):
        if q != queue:
            assert all(not cause for _, cause in bench.records[q])
    if queue < 2:
        value = await bench.host.read(Control.ENGINE + queue * 0x100 + 0x10 + 8 * STALLS[Engine(queue)].index("fault"))
        assert value > 0, "the cycles of a halted queue are not counted as such"
    await bench.counters(running=True)
    assert regions[queue][1] > victim.number


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_trigger_beyond_its_ring_releases_nothing(dut: Any) -> None:
    """Two triggers fit, the third asks for one more than is left."""
    bench = IssueBench(dut)
    await bench.start()
    triggers = [Node(4, n, {"opcode": 1, "imm0": 1, "imm1": count}) for n, count in enumerate((2, 3, 2))]
    moved = [Node(1, n, {"row_bytes": 64, "count0": 1, "count1": 1, "count2": 1}, True) for n in range(6)]
    program = Program([], [[], [], [], [], triggers], [[], moved] + [[]] * (bench.cfg.dma.rings - 2), {})
    await bench.run(program)
    await bench.until("fault")
    await bench.quiet()
    assert bench.records[4] == [(0, 0), (1, 0), (2, Cause.BAD_RING)]
    base = Control.RING + 0x100
    assert await bench.host.read_all([base + RingRegister.RELEASED, base + RingRegister.COMPLETED]) == [5, 5]
    COVERAGE.hit("trigger_beyond_ring")


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def many_descriptors_are_released(dut: Any) -> None:
    """Triggers of any size add up, from any queue; nobody takes the descriptors."""
    bench = IssueBench(dut)
    bench.any_word = True
    largest = (bench.cfg.hbm.capacity_mib << 20 >> 7).bit_length() - 4  # ten of them lie in HBM
    await bench.start()
    for _ in range(6):
        sizes = [
            [1 << int(bench.rng.integers(1, largest)) for _ in range(int(bench.rng.integers(3)))] for _ in range(5)
        ]
        queues = [
            [
                Node(q, n, {"opcode": 1, "imm0": 1, "imm1": size - int(bench.rng.integers(2))})
                for n, size in enumerate(own)
            ]
            for q, own in enumerate(sizes)
        ]
        total = sum(node.fields["imm1"] for own in queues for node in own)
        program = Program([], queues, [[]] * bench.cfg.dma.rings, {})
        regions = bench.place(program)
        regions[6] = 0, total
        await bench.write_regions(regions)
        bench.play(program, 1)
        assert bench.dma is not None
        bench.dma.task.cancel()
        dut.release__ready.value = 1
        bench.records = [[] for _ in queues]
        await bench.host.write(Control.RUN, 1)
        await bench.quiet()
        assert [len(records) for records in bench.records] == [len(own) for own in queues]
        offsets = (RingRegister.RELEASED, RingRegister.COMPLETED, RingRegister.FAULT)
        assert await bench.host.read_all([Control.RING + 0x100 + o for o in offsets]) == [total, 0, 0]
        await bench.reset()
    COVERAGE.hit("many_descriptors")


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def faults_of_rings_are_seen(dut: Any) -> None:
    """A ring that does not lie in HBM; a descriptor that the DMA refuses; done does not come before the DMA."""
    bench = IssueBench(dut)
    await bench.start()
    dma = bench.dma
    assert dma is not None
    await bench.host.write(Control.RING + RingRegister.BASE, 64)
    await bench.host.write(Control.RING + RingRegister.COUNT, 3)
    await bench.host.write(Control.RUN, 1)
    await bench.until("fault", 60)
    fault, address = await bench.host.read_all(
        [Control.RING + RingRegister.FAULT, Control.RING + RingRegister.FAULT_ADDRESS]
    )
    assert (fault, address) == (Cause.OUT_OF_RANGE, 64)
    COVERAGE.hit("ring_fault")
    dma.task.cancel()
    for ring in range(bench.cfg.dma.rings):
        told = {name: getattr(dut, f"ring_status__{ring}__{name}") for name in ("busy", "cause", "sequence", "address")}
        await bench.reset()
        await bench.host.write(Control.RUN, 1)
        await bench.until("done", 60)
        told["busy"].value = 1  # something is still on its way
        await bench.host.write(Control.RUN, 1)
        await bench.cycles(100)
        assert dut.done.value == 0 and dut.fault.value == 0, "done although the DMA is busy"
        told["cause"].value = RING_FAULT
        told["sequence"].value = 700
        told["address"].value = 0xABCDEF0123456789
        await bench.until("fault", 10)
        base = Control.RING + 0x100 * ring
        values = await bench.host.read_all(
            [base + RingRegister.FAULT, base + RingRegister.FAULT_ADDRESS, Control.STATUS]
        )
        assert values == [RING_FAULT | 700 << 16, 0xABCDEF0123456789, 2]
        for port in told.values():
            port.value = 0
    COVERAGE.hit("dma_fault")


async def _port(dut: Any, registers: list[int]) -> None:
    """The registers of a port: shows the one whose address is there."""
    while True:
        dut.link_value.value = registers[int(dut.link_address.value) // 8]
        await dut.link_address.value_change


async def _gpsimd(dut: Any, counters: list[int]) -> None:
    """The counters of GPSIMD cores."""
    while True:
        dut.gpsimd_value.value = counters[int(dut.gpsimd_core.value) << 5 | int(dut.gpsimd_index.value)]
        await First(dut.gpsimd_core.value_change, dut.gpsimd_index.value_change)


async def _tell(bench: IssueBench, held: list[int]) -> None:
    """A random update of a semaphore, which `held` follows."""
    dut = bench.dut
    index, update = int(bench.rng.integers(len(held))) % 24, int(bench.rng.integers(1, 3))
    value = int(bench.rng.integers(1 << 32)) - (1 << 31)
    told = SEMAPHORE_UPDATE.const({"index": index, "update": update, "value": value}).as_bits()
    dut.gpsimd_update__payload.value, dut.gpsimd_update__valid.value = told, 1
    await bench.edge
    while dut.gpsimd_update__ready.value == 0:
        await bench.edge
    dut.gpsimd_update__valid.value = 0
    held[index] = (value + (held[index] if update == Update.ADD else 0) + (1 << 31)) % (1 << 32) - (1 << 31)


async def _hold(bench: IssueBench, held: list[int], when: str) -> None:
    """All semaphores are what `held` says."""
    shown = await bench.host.read_all([Control.SEMAPHORE + 8 * n for n in range(len(held))])
    assert [v - (v >> 63 << 64) for v in shown] == held, f"semaphores after {when}"


async def _cleared(bench: IssueBench, cycles: list[int]) -> None:
    """Counts cycles in which the DMA is told of a clear."""
    while True:
        await bench.edge
        cycles[0] += bench.dut.clear.value == 1


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def semaphores_stay_or_are_cleared(dut: Any) -> None:
    """RUN = 1 and CLEAR = 1 make all 0, RUN = 3 does not, nor does anything while a program runs or has faulted."""
    bench = IssueBench(dut)
    await bench.start()
    assert bench.dma is not None
    bench.dma.task.cancel()
    held, told, want = [0] * bench.cfg.issue.semaphores, [0], 0
    cocotb.start_soon(_cleared(bench, told))
    ways = [(Control.RUN, 0), (Control.RUN, 1), (Control.RUN, 2), (Control.RUN, 3)]
    ways += [(Control.CLEAR, value) for value in (0, 1, 2, 3)]
    clears = [(Control.RUN, 1), (Control.CLEAR, 1), (Control.CLEAR, 3)]
    for n in bench.rng.permutation(3 * len(ways)).tolist():
        way = ways[n % len(ways)]
        for _ in range(4):
            await _tell(bench, held)
        await bench.host.write(*way)
        if way in clears:
            held, want = [0] * len(held), want + 1
        if way[0] == Control.RUN and way[1] & 1:
            await bench.until("done", 60)
        await bench.cycles(1)
        await _hold(bench, held, f"{way[1]} was written to {way[0].name}")
        assert told == [want], f"{way[1]} written to {way[0].name}: the DMA was told of {told} clears, not {want}"
    COVERAGE.hit("kept semaphores")
    COVERAGE.hit("cleared semaphores")
    assert await bench.host.read(Control.CLEAR) == 0

    # One that runs, whose counters stand still at some time, and one that faults.
    dut.ring_status__0__busy.value = 1
    for start in (3, 1, 3):
        for _ in range(4):
            await _tell(bench, held)
        await bench.host.write(Control.RUN, start)
        await bench.host.write(Control.CLEAR, 1)  # the program begins in this cycle
        if start == 1:
            held, want = [0] * len(held), want + 1
        await bench.cycles(2)
        await _hold(bench, held, f"a start with {start} and a clear behind it")
        for last in (False, True):
            if last and start == 3:
                dut.ring_status__0__cause.value = RING_FAULT
                await bench.until("fault", 10)
            for n in bench.rng.permutation(len(ways)).tolist():
                await _tell(bench, held)
                await bench.host.write(*ways[n])
                await bench.cycles(2)
                await _hold(bench, held, f"{ways[n]} was written while a program runs")
        assert told == [want] and dut.done.value == 0
        if start == 3:
            dut.ring_status__0__cause.value = 0
            held = [0] * len(held)
            await bench.reset()
        else:
            dut.ring_status__0__busy.value = 0
            await bench.until("done", 10)
            dut.ring_status__0__busy.value = 1
            await _hold(bench, held, "the end of a program")
    dut.ring_status__0__busy.value = 0
    COVERAGE.hit("clear while a program runs")

    # A queue waits for a signal that has come before the start: kept it is there, cleared the queue waits for the next.
    await bench.cycles(4)
    for keep in (True, False):
        signal = SEMAPHORE_UPDATE.const({"index": 5, "update": Update.SET, "value": 7})
        wait = {"opcode": 0, "wait0": Wait.EQ, "wait0_semaphore": 5, "wait0_value": 7}
        program = Program([], [[], [], [], [], [Node(4, 0, wait)]], [[] for _ in range(bench.cfg.dma.rings)], {})
        for late in range(1 + (not keep)):
            if late:
                await bench.cycles(200)
                assert dut.done.value == 0, "a signal from before the start was not cleared"
            dut.gpsimd_update__payload.value, dut.gpsimd_update__valid.value = signal.as_bits(), 1
            await bench.edge
            dut.gpsimd_update__valid.value = 0
            if not late:
                await bench.run(program, keep=keep)
        await bench.until("done", 200)
        assert bench.records[4] == [(0, 0)]
    COVERAGE.hit("waits for what came before")


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def gpsimd_cores_see_and_change_semaphores(dut: Any) -> None:
    """Each reads what was written last, in the cycle after; the host sees the same."""
    bench = IssueBench(dut)
    await bench.start()
    held = [0] * bench.cfg.issue.semaphores
    for _ in range(400):
        await _tell(bench, held)
        other = int(bench.rng.integers(len(held))) % 24
        dut.gpsimd_semaphore.value = other
        await bench.edge
        await bench.edge
        assert int(dut.gpsimd_semaphore_value.value.to_signed()) == held[other], f"semaphore {other}"
    await _hold(bench, held, "all updates")


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def registers_keep_their_place(dut: Any) -> None:
    """Nothing is where nothing should be; conflicts count while running only; writes to others do nothing."""
    bench = IssueBench(dut)
    await bench.start()
    nowhere = [0x68, 0x4C, 0x4, 0x1030, 0x1500, 0x2030, 0x2000 + 0x100 * bench.cfg.dma.rings, 0x3030, 0x57F8, 0x6004]
    nowhere += [0x4500, 0x4058, 0x7000, 0x8000, 0x8600, 0x8204, 0x9000, 0xFFF8, 0x6000 + 8 * bench.cfg.issue.semaphores]
    for address in nowhere:
        await bench.host.write(address, (1 << 64) - 1)
    assert await bench.host.read_all(nowhere) == [0] * len(nowhere)
    places = {name: Control.ENDPOINT + EndpointRegister[name.upper()] for name, _ in ENDPOINT_STATUS}
    for _ in range(8):
        told = {n: int.from_bytes(bench.rng.bytes(8), "little") % (1 << field.width) for n, field in ENDPOINT_STATUS}
        dut.endpoint.value = ENDPOINT_STATUS.const(told).as_bits()
        await bench.host.write(places["refused"], 5)
        assert dict(zip(told, await bench.host.read_all(list(places.values())), strict=True)) == told
    COVERAGE.hit("endpoint")
    registers = [int.from_bytes(bench.rng.bytes(8), "little") for _ in range(32)]
    port = cocotb.start_soon(_port(dut, registers))
    order = bench.rng.permutation(32).tolist()
    assert await bench.host.read_all([0x7000 + 8 * n for n in order]) == [registers[n] for n in order], "of a port"
    assert await bench.host.read_all([0x7100, 0x7F00]) == [0, 0], "behind the registers of a port"
    port.cancel()
    dut.link_value.value = 0
    counters = [int.from_bytes(bench.rng.bytes(6), "little") for _ in range(256)]
    cores = cocotb.start_soon(_gpsimd(dut, counters))
    order = bench.rng.permutation(256).tolist()
    assert await bench.host.read_all([Control.GPSIMD + 8 * n for n in order]) == [counters[n] for n in order], "cores"
    assert await bench.host.read_all([Control.GPSIMD + 4, Control.CONFLICT + 0x700]) == [0, 0]
    cores.cancel()
    dut.gpsimd_value.value = 0
    for address in (Control.STATUS, Control.CYCLES, Control.HBM_READ, 0x1010, 0x1020, 0x2010, 0x4000, 0x5000, 0x6000):
        await bench.host.write(address, 5)
        assert await bench.host.read(address) == 0
    dut.refused.value = 1
    dut.ring_status__0__busy.value = 1
    bench.dma.task.cancel() if bench.dma else None
    await bench.cycles(5)
    await bench.host.write(Control.RUN, 1)
    await bench.host.write(Control.QUEUE + QueueRegister.COUNT, 9)  # not while it runs
    await bench.cycles(10)
    dut.refused.value = 1 << (len(bench.conflicts) - 1)
    await bench.cycles(7)
    dut.refused.value = 0
    last = Control.CONFLICT + 8 * (len(bench.conflicts) - 1)
    values = await bench.host.read_all([Control.CONFLICT, last, Control.QUEUE + QueueRegister.COUNT])
    assert 8 <= values[0] <= 12 and values[1] == 7 and values[2] == 0, f"conflicts and count: {values}"
    COVERAGE.hit("conflict")
    COVERAGE.require_all()
