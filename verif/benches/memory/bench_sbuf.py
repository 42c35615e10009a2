"""SBUF against a model that decides every grant, every byte and every refusal by itself, cycle by cycle."""

import cocotb

from rtl.base.memory_port import QUADRANTS
from rtl.contract.config import load
from verif.bench import Run, noticed_by
from verif.benches.memory.sbuf_driver import started
from verif.benches.memory.sbuf_ports import COVERAGE, READS, WRITES, Request

_PLANTED = (
    "a mover read that is refused never becomes urgent",
    "a mover write that is refused never becomes urgent",
    "a read is granted although its last quadrant is taken",
    "a read refused because of an aged mover is not reported",
    "a write is granted although its last quadrant is taken",
    "a mover's byte mask is ignored",
    "an engine writes partitions of SBUF that its mask excludes",
    "a mover reads its upper 8 bytes from the first lane",
    "an engine gets the bank of the request, not of the data, when a mover read too",
)
_SUMS = (
    "a sum beside SBUF does not wait for one of the same bytes",
    "a mover's add overwrites what is in SBUF",
    "the end of a sum is told before it is in SBUF",
    "the sum of two INT32 beside SBUF loses its carry into the upper half",
    "a sum's read that is refused never becomes urgent",
    "a mover and its sums read one bank at once",
    "a sum reads its upper 8 bytes from the first lane",
)

RUNS = (
    Run(
        "sbuf",
        faults=(
            *noticed_by("movers_wait_no_longer_than_promised", *_PLANTED),
            *noticed_by("adds_what_movers_bring", *_SUMS),
        ),
    ),
    Run("sbuf", config=load("tiny", ["sbuf.adders=false"]), seeds=(1,), regress=True),
)


@cocotb.test(timeout_time=200, timeout_unit="us")
async def fills_and_reads_back_every_word(dut) -> None:
    bench = await started(dut)
    order = [divmod(int(i), bench.words // 2) for i in bench.rng.permutation(bench.lanes * (bench.words // 2))]
    order = order[: 512 * bench.lanes]
    places = {e: iter(order) for e in range(bench.movers)}

    def fill(kind: str, n: int) -> Request | None:
        if kind != "mover_write" or (place := next(places[n], None)) is None:
            return None
        return Request(lane=place[0], pair=place[1], data=int.from_bytes(bench.rng.bytes(16), "little"), bytes=0xFFFF)

    for _ in range(len(order) + 4):
        await bench.step(fill)
    at = iter(range(bench.words))

    def read(kind: str, n: int) -> Request | None:
        if kind != "read" or n or (word := next(at, None)) is None:
            return None
        return Request(quadrants=15, words=[word] * QUADRANTS)

    for _ in range(bench.words + 4):
        await bench.step(read)


@cocotb.test(timeout_time=200, timeout_unit="us")
async def serves_everyone_under_random_traffic(dut) -> None:
    bench = await started(dut)
    everyone = ("read", "write", "mover_read", "mover_write")
    for share in (0.1, 0.4, 0.8):
        await bench.run(500, dict.fromkeys(everyone, share))
    await bench.run(800, dict.fromkeys(everyone, 0.5), bench.words)
    assert bench.counts.sum() > 0


@cocotb.test(timeout_time=200, timeout_unit="us")
async def movers_wait_no_longer_than_promised(dut) -> None:
    bench = await started(dut)
    # engines ask in every cycle and leave no pair of banks free for long
    for hot, cycles in ((2, 400), (4, 1000), (16, 400)):
        await bench.run(cycles, {"read": 1.0, "write": 1.0, "mover_read": 0.6, "mover_write": 0.6}, hot)


@cocotb.test(timeout_time=200, timeout_unit="us")
async def adds_what_movers_bring(dut) -> None:
    """Sums and copies of a few bytes from all ports, with engines that leave no bank free for long."""
    bench = await started(dut)
    for adding in (0.2, 0.6, 1.0):
        await bench.run(300, {"mover_read": 0.5, "mover_write": 1.0}, 8, adding)
        await bench.run(400, {"read": 0.8, "write": 0.8, "mover_read": 1.0, "mover_write": 1.0}, 8, adding)
    for hot in (4, 16):
        await bench.run(600, {"read": 1.0, "write": 0.9, "mover_read": 0.9, "mover_write": 1.0}, hot, 0.8)
    await bench.run(400, {"mover_read": 1.0, "mover_write": 1.0}, 64, 1.0)
    await bench.run(600, {"write": 1.0, "mover_write": 1.0}, 64, 1.0)


@cocotb.test(timeout_time=200, timeout_unit="us")
async def movers_run_at_full_speed_beside_a_stream(dut) -> None:
    bench = await started(dut)
    await bench.run(300, {"read 0": 1.0, "mover_read": 1.0, "mover_write": 1.0})
    await bench.run(200, {"mover_read": 1.0, "mover_write": 1.0})
    assert bench.counts[len(READS) + len(WRITES) :].sum() > 0
    if bench.cfg.sbuf.adders:
        COVERAGE.require_all()
