"""Two cores at two ports: tensors and semaphores go to and fro over a link that loses flits."""

from collections.abc import Mapping
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles

from rtl.contract.formats import FORMATS
from rtl.contract.isa import DESCRIPTOR, INSTRUCTION, AccessPattern, AluOp, Opcode, Queue, Update, Wait
from rtl.contract.link import LinkCause, LinkState
from rtl.contract.memmap import PARTITION_STRIDE_BYTES, Control, QueueRegister, RingRegister, Space, address
from verif.agents.axi import HbmAgent
from verif.agents.bench import Bench
from verif.checks.coverage import Coverage

_BINS = ["write to SBUF", "write to HBM", "signal", "read", "computed there", "replay", "outage", "after a lost link"]
COVERAGE = Coverage("core pair", _BINS)
FLIT = 10  # cycles of a core in which a flit's last beat arrives
HBM_BYTES = 1 << 18
COLUMNS = 240  # FP32: a row takes three packets
ROW = 4 * COLUMNS
CODE, X, Y, Z, BACK, FETCHED, WASTE = (n << 15 for n in range(7))  # places in HBM
SX, SY, SZ = 0, 1024, 2048  # bytes of a partition
ARRIVED, LOADED, ADDED, STORED, ANSWERED, READ, GO, NEVER = range(100, 108)  # semaphores


def _instruction(
    opcode: Opcode, wait: tuple[int, int] | None = None, *, update: int = 0, **fields: Any
) -> Mapping[str, int]:
    """Fields of an instruction that waits for (semaphore, least value), and adds 1 to `update`."""
    values: dict[str, int] = {"opcode": int(opcode)}
    if wait is not None:
        values |= {"wait0": Wait.GE, "wait0_semaphore": wait[0], "wait0_value": wait[1]}
    if update:
        values |= {"update": Update.ADD, "update_semaphore": update, "update_value": 1}
    for name, value in fields.items():
        if isinstance(value, AccessPattern):
            values |= {f"{name}_{field}": int(v) for field, v in value.fields().items()}
        else:
            values[name] = int(value)
    return values


def _copy(partitions: int, source: tuple[int, int], destination: tuple[int, int], semaphore: tuple[int, int]) -> Any:
    """A descriptor of one row a partition from (core, place) to (core, place), and its (core, semaphore). A place
    below X is a byte of the partitions in SBUF."""

    def end(core: int, at: int) -> tuple[int, int]:
        if at < X:
            return address(Space.SBUF, at, core_id=core), PARTITION_STRIDE_BYTES
        return address(Space.HBM, at, core_id=core), ROW

    (a, a_step), (b, b_step) = end(*source), end(*destination)
    return {
        "source": a,
        "destination": b,
        "row_bytes": ROW,
        "count0": partitions,
        "source_step0": a_step,
        "destination_step0": b_step,
        "count1": 1,
        "count2": 1,
        "class_": 1,
        "signal_address": address(Space.SEMAPHORES, 4 * semaphore[1], core_id=semaphore[0]),
        "signal_update": Update.ADD,
        "signal_value": 1,
    }


class PairBench(Bench):
    """Both cores, an HBM each."""

    def __init__(self, dut: Any):
        super().__init__(dut)
        self.hbm = [np.zeros(HBM_BYTES, np.uint8) for _ in range(2)]
        self.agents = [
            HbmAgent(
                self,
                memory,
                prefixes=(f"core{n}_axi0",),
                port_bytes=self.cfg.hbm.port_bytes,
                commit=lambda: int(self.rng.integers(1, 501)),
            )
            for n, memory in enumerate(self.hbm)
        ]
        for n in range(2):
            for name in ("valid", "write", "address", "wdata"):
                getattr(dut, f"core{n}_host_{name}").value = 0
            getattr(dut, f"port{n}_refuse").value = 0
            getattr(dut, f"port{n}_restart").value = 0

    async def up(self) -> None:
        """Wait until both ports are UP; at most 5,000 cycles."""
        for _ in range(500):
            await self.cycles(10)
            if all(getattr(self.dut, f"port{n}_state").value == LinkState.UP for n in range(2)):
                return
        raise AssertionError("the link does not come up")

    async def refuse(self, port: int) -> None:
        """Refuse flits at random, one in 12 or so."""
        pin = getattr(self.dut, f"port{port}_refuse")
        while True:
            await ClockCycles(self.clk, int(self.rng.integers(1, 23 * FLIT)))
            pin.value = 1
            await ClockCycles(self.clk, FLIT)
            pin.value = 0

    def counts(self, port: int) -> dict[LinkCause, int]:
        """What a port has counted."""
        all_ = int(getattr(self.dut, f"port{port}_counts").value)
        return {cause: all_ >> 32 * cause & 0xFFFFFFFF for cause in LinkCause}

    async def done(self) -> int:
        """Wait until both cores are done; the cycles that took, at most 40,000."""
        cycles = 0
        while cycles < 40_000:
            await self.cycles(20)
            cycles += 20
            if all(getattr(self.dut, f"core{n}_done").value == 1 for n in range(2)):
                break
        faults = [n for n in range(2) if getattr(self.dut, f"core{n}_fault").value == 1]
        assert not faults, f"a queue or ring of core {faults} has faulted"
        assert cycles < 40_000, "the cores did not end"
        return cycles

    async def write(self, core: int, at: int, value: int) -> None:
        """Write a register of a core."""
        pins = {name: getattr(self.dut, f"core{core}_host_{name}") for name in ("valid", "write", "address", "wdata")}
        pins["valid"].value = 1
        pins["write"].value = 1
        pins["address"].value = at
        pins["wdata"].value = value
        await self.edge
        pins["valid"].value = 0
        pins["write"].value = 0

    async def load(self, core: int, queues: Mapping[Queue, list[Any]], rings: list[list[Any]]) -> None:
        """Put words of queues and rings into HBM, and tell the core where they are."""
        at = CODE
        places = [(Control.QUEUE + 0x100 * q, INSTRUCTION, words) for q, words in queues.items()]
        places += [(Control.RING + 0x100 * r, DESCRIPTOR, words) for r, words in enumerate(rings)]
        for registers, word, items in places:
            await self.write(core, registers + QueueRegister.BASE, at)
            await self.write(core, registers + QueueRegister.COUNT, len(items))
            for item in items:
                data = word.pack(item).to_bytes(word.bytes, "little")
                self.hbm[core][at : at + len(data)] = np.frombuffer(data, np.uint8)
                at += len(data)
        assert at <= X and RingRegister.BASE == QueueRegister.BASE and RingRegister.COUNT == QueueRegister.COUNT

    def tensor(self, core: int, at: int) -> np.ndarray:
        """A tensor (P, COLUMNS) of FP32 in HBM, as a view."""
        return self.hbm[core][at : at + self.cfg.partitions * ROW].view(np.float32).reshape(-1, COLUMNS)


async def _exchange(bench: PairBench, *, lost: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Programs of both cores; x and y. Core 0 writes x to SBUF and y to HBM of core 1, which adds them and writes the
    sum to core 0; core 0 then reads the sum from core 1's HBM too. `lost`: it begins with a read by a ring of its
    own, and goes on when core 1 has begun."""
    p = bench.cfg.partitions
    x, y = (bench.rng.standard_normal((p, COLUMNS)).astype(np.float32) for _ in range(2))
    bench.tensor(0, X)[:] = x
    bench.tensor(0, Y)[:] = y

    def trigger(ring: int, count: int, wait: tuple[int, int] | None = None) -> Mapping[str, int]:
        return _instruction(Opcode.DMA_TRIGGER, wait, imm0=ring, imm1=count)

    def tile(at: int) -> AccessPattern:
        return AccessPattern(
            space=Space.SBUF,
            dtype=FORMATS["fp32"].code,
            partition_start=0,
            partition_count=p,
            offset=at,
            dims=((1, COLUMNS),),
        )

    given = [_copy(p, (0, X), (1, SX), (1, ARRIVED)), _copy(p, (0, Y), (1, Y), (1, ARRIVED))]
    fetched = _copy(p, (1, Z), (0, FETCHED), (0, READ))
    if lost:
        rings = [[*given, fetched], [_copy(p, (1, X), (0, WASTE), (0, NEVER))]]
        sync = [trigger(1, 1), trigger(0, 2, (GO, 1)), trigger(0, 1, (ANSWERED, 1))]
    else:
        rings = [given, [fetched]]
        sync = [trigger(0, 2), trigger(1, 1, (ANSWERED, 1))]
    await bench.load(0, {Queue.SYNC: [*sync, _instruction(Opcode.NOP, (READ, 1))]}, rings)
    add = _instruction(
        Opcode.TENSOR_TENSOR,
        (LOADED, 1),
        update=ADDED,
        op0=AluOp.ADD,
        src0=tile(SX),
        src1=tile(SY),
        dst=tile(SZ),
    )
    sums = [_copy(p, (1, SZ), (1, Z), (1, STORED)), _copy(p, (1, SZ), (0, BACK), (0, ANSWERED))]
    sync = [trigger(0, 1, (ARRIVED, 2)), trigger(1, 1, (ADDED, 1)), trigger(1, 1, (STORED, 1))]
    if lost:
        sums.insert(0, _copy(1, (1, Y), (0, WASTE), (0, GO)))
        sync.insert(0, trigger(1, 1))
    await bench.load(1, {Queue.VECTOR: [add], Queue.SYNC: sync}, [[_copy(p, (1, Y), (1, SY), (1, LOADED))], sums])
    return x, y


def _same(bench: PairBench, x: np.ndarray, y: np.ndarray) -> None:
    """Both memories hold what they must, bit by bit."""
    want = x + y
    assert np.array_equal(bench.tensor(1, Y), y), "y at core 1"
    COVERAGE.hit("write to HBM")
    assert np.array_equal(bench.tensor(0, BACK), want), "the sum that core 1 wrote"
    for bin_ in ("write to SBUF", "signal", "computed there"):
        COVERAGE.hit(bin_)
    assert np.array_equal(bench.tensor(0, FETCHED), want), "the sum that core 0 read"
    COVERAGE.hit("read")
    assert int(bench.dut.core0_refused.value) == 0 and int(bench.dut.core1_refused.value) == 0


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def cores_exchange_tensors(dut: Any) -> None:
    """Over a link that refuses one flit in twelve, and all of them for 100 flits in the middle."""
    bench = PairBench(dut)
    await bench.start()
    await bench.up()
    x, y = await _exchange(bench)
    for core in (1, 0):
        await bench.write(core, Control.RUN, 1)
    noise = [cocotb.start_soon(bench.refuse(n)) for n in range(2)]
    while int(dut.port0_in_flight.value) == 0:  # the first tensors leave
        await bench.cycles(1)
    await bench.cycles(200)
    for task in noise:
        task.cancel()
    for level in (1, 0):
        for n in range(2):
            getattr(dut, f"port{n}_refuse").value = level
        if level:
            await bench.cycles(100 * FLIT)
    for n in range(2):
        cocotb.start_soon(bench.refuse(n))
    cycles = await bench.done()
    _same(bench, x, y)
    counts = [bench.counts(n) for n in range(2)]
    for n in range(2):
        wrong = (
            LinkCause.BAD_UNIT,
            LinkCause.BAD_PACKET,
            LinkCause.CREDIT_OVERRUN,
            LinkCause.BAD_CREDIT,
            LinkCause.DOWN,
        )
        for cause in (*wrong, LinkCause.UNRESOLVED, LinkCause.MALFORMED, LinkCause.SPURIOUS):
            assert counts[n][cause] == 0, f"port {n} counts {counts[n][cause]} {cause.name}"
        assert counts[n][LinkCause.REFUSED] > 100
    COVERAGE.when(all(c[LinkCause.REPLAY] > 0 for c in counts), "replay")
    COVERAGE.when(all(c[LinkCause.RETRAINED] > 0 for c in counts), "outage")
    refused, replays = (sum(c[cause] for c in counts) for cause in (LinkCause.REFUSED, LinkCause.REPLAY))
    dut._log.warning("both cores were done after %d cycles; %d flits refused, %d replays", cycles, refused, replays)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_lost_link_ends_reads(dut: Any) -> None:
    """Port 1 begins again while core 0 reads: that ring faults, the others exchange tensors over the new session."""
    bench = PairBench(dut)
    await bench.start()
    await bench.up()
    x, y = await _exchange(bench, lost=True)
    await bench.write(0, Control.RUN, 1)
    while int(dut.port0_in_flight.value) == 0:
        await bench.cycles(1)
    await bench.cycles(int(bench.rng.integers(1, 300)))
    dut.port1_restart.value = 1
    await bench.cycles(4)
    dut.port1_restart.value = 0
    for _ in range(1000):
        await bench.cycles(10)
        if dut.core0_fault.value == 1:
            break
    assert dut.core0_fault.value == 1, "the read goes on waiting"
    await bench.up()
    assert all(bench.counts(n)[LinkCause.DOWN] > 0 for n in range(2))
    await bench.cycles(2000)  # what the ring had asked for has come
    await bench.write(1, Control.RUN, 1)
    for _ in range(1000):
        await bench.cycles(40)
        if np.array_equal(bench.tensor(0, FETCHED), x + y):
            break
    _same(bench, x, y)
    assert dut.core1_fault.value == 0
    COVERAGE.hit("after a lost link")
    COVERAGE.require_all()
