"""Two cores joined by their packet streams: tensors and semaphores go to and fro."""

from collections.abc import Mapping
from typing import Any

import cocotb
import numpy as np

from rtl.contract.formats import FORMATS
from rtl.contract.isa import DESCRIPTOR, INSTRUCTION, AccessPattern, AluOp, Opcode, Queue, Update, Wait
from rtl.contract.memmap import PARTITION_STRIDE_BYTES, Control, QueueRegister, RingRegister, Space, address
from verif.agents.axi import HbmAgent
from verif.agents.bench import Bench
from verif.checks.coverage import Coverage

COVERAGE = Coverage("core pair", ["write to SBUF", "write to HBM", "signal", "read", "computed there"])
HBM_BYTES = 1 << 18
COLUMNS = 240  # FP32: a row takes three packets
ROW = 4 * COLUMNS
CODE, X, Y, Z, BACK, FETCHED = (n << 15 for n in range(6))  # places in HBM
SX, SY, SZ = 0, 1024, 2048  # bytes of a partition
ARRIVED, LOADED, ADDED, STORED, ANSWERED, READ = range(100, 106)  # semaphores


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


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def cores_exchange_tensors(dut: Any) -> None:
    """Core 0 writes x to SBUF and y to HBM of core 1, which adds them and writes the sum to core 0; core 0 then
    reads the sum from core 1's HBM too."""
    bench = PairBench(dut)
    await bench.start()
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

    await bench.load(
        0,
        {
            Queue.SYNC: [
                trigger(0, 2),
                trigger(1, 1, (ANSWERED, 1)),
                _instruction(Opcode.NOP, (READ, 1)),
            ]
        },
        [
            [_copy(p, (0, X), (1, SX), (1, ARRIVED)), _copy(p, (0, Y), (1, Y), (1, ARRIVED))],
            [_copy(p, (1, Z), (0, FETCHED), (0, READ))],
        ],
    )
    add = _instruction(
        Opcode.TENSOR_TENSOR,
        (LOADED, 1),
        update=ADDED,
        op0=AluOp.ADD,
        src0=tile(SX),
        src1=tile(SY),
        dst=tile(SZ),
    )
    await bench.load(
        1,
        {
            Queue.VECTOR: [add],
            Queue.SYNC: [trigger(0, 1, (ARRIVED, 2)), trigger(1, 1, (ADDED, 1)), trigger(1, 1, (STORED, 1))],
        },
        [
            [_copy(p, (1, Y), (1, SY), (1, LOADED))],
            [_copy(p, (1, SZ), (1, Z), (1, STORED)), _copy(p, (1, SZ), (0, BACK), (0, ANSWERED))],
        ],
    )
    for core in (1, 0):
        await bench.write(core, Control.RUN, 1)
    cycles = 0
    while cycles < 40_000:
        await bench.cycles(20)
        cycles += 20
        if dut.core0_done.value == 1 and dut.core1_done.value == 1:
            break
    assert dut.core0_fault.value == 0 and dut.core1_fault.value == 0, "a queue or ring has faulted"
    assert dut.core0_done.value == 1 and dut.core1_done.value == 1, "the cores did not end"
    want = x + y
    assert np.array_equal(bench.tensor(1, Y), y), "y at core 1"
    COVERAGE.hit("write to HBM")
    assert np.array_equal(bench.tensor(0, BACK), want), "the sum that core 1 wrote"
    for bin_ in ("write to SBUF", "signal", "computed there"):
        COVERAGE.hit(bin_)
    assert np.array_equal(bench.tensor(0, FETCHED), want), "the sum that core 0 read"
    COVERAGE.hit("read")
    assert int(dut.core0_refused.value) == 0 and int(dut.core1_refused.value) == 0
    COVERAGE.require_all()
    dut._log.warning("both cores were done after %d cycles", cycles)
