"""Two cores at two ports: programs of the kernel language exchange tensors over a link that loses flits."""

from collections.abc import Mapping
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles

from firmware.image import Image, build_image, build_images
from firmware.program import Program
from rtl.contract.config import load
from rtl.contract.isa import Cause
from rtl.contract.link import LinkCause, LinkState
from rtl.contract.memmap import Control, EndpointRegister, LinkRegister, QueueRegister, RingRegister, core_place
from verif.agents.axi import HbmAgent
from verif.agents.bench import Bench
from verif.agents.host import Host
from verif.bench import Run, noticed_by
from verif.benches.core.exchange import SIGNALS, Exchange, exchange, misdirected, whole_sbuf
from verif.checks.coverage import Coverage
from verif.golden.cores import GoldenCores
from verif.golden.results import RunResult

_PLANTED = (
    "a credit is not returned to the sender",
    "the epoch is ignored: every gap is a nak",
    "the session of the partner is not compared",
    "a signal to an endpoint does not wait for the writes before it",
    "the memories' clock does not wait for the DMA",
    *noticed_by("a_signal_may_come_before_the_start", "a start that keeps semaphores clears them"),
)

RUNS = (Run("core_pair", config=load("tiny", ["gpsimd.vectors=false"]), seeds=(1,), faults=_PLANTED, slow=True),)

_BINS = ["write to SBUF", "write to HBM", "signal", "read", "computed there", "replay", "outage", "after a lost link"]
_BINS += ["refused write", "refused read", "registers of the port", "write by a GPSIMD core"]
_BINS += ["signals before the start", "added there"]
COVERAGE = Coverage("core pair", _BINS)
FLIT = 10  # cycles of a core in which a flit's last beat arrives
HBM_BYTES = 1 << 18
CORES = (0, 1)


class PairBench(Bench):
    """Both cores, an HBM each."""

    def __init__(self, dut: Any):
        super().__init__(dut)
        self.hbm = [np.full(HBM_BYTES, 0xFF, np.uint8) for _ in CORES]
        self.agents = [
            HbmAgent(
                self,
                memory,
                prefixes=(f"core__{n}__axi",),
                port_bytes=self.cfg.hbm.port_bytes,
                commit=lambda: int(self.rng.integers(1, 501)),
            )
            for n, memory in enumerate(self.hbm)
        ]
        self.hosts = [Host(self, f"core__{n}__") for n in CORES]
        for n in CORES:
            getattr(dut, f"port__{n}__refuse").value = 0
            getattr(dut, f"port__{n}__restart").value = 0

    async def up(self) -> None:
        """Wait until both ports are UP; at most 5,000 cycles."""
        for _ in range(500):
            await self.cycles(10)
            if all(getattr(self.dut, f"port__{n}__state").value == LinkState.UP for n in CORES):
                return
        raise AssertionError("the link does not come up")

    async def refuse(self, port: int) -> None:
        """Refuse flits at random, one in 12 or so."""
        pin = getattr(self.dut, f"port__{port}__refuse")
        while True:
            await ClockCycles(self.clk, int(self.rng.integers(1, 23 * FLIT)))
            pin.value = 1
            await ClockCycles(self.clk, FLIT)
            pin.value = 0

    def counts(self, port: int) -> dict[LinkCause, int]:
        """What a port has counted."""
        all_ = int(getattr(self.dut, f"port__{port}__counts").value)
        return {cause: all_ >> 32 * cause & 0xFFFFFFFF for cause in LinkCause}

    async def endpoint(self, core: int) -> dict[EndpointRegister, int]:
        """What a core's endpoint has counted."""
        values = await self.hosts[core].read_all([Control.ENDPOINT + register for register in EndpointRegister])
        return dict(zip(EndpointRegister, values, strict=True))

    async def port_registers(self, core: int) -> dict[int, int]:
        """What a core's memory map shows of its port: by LinkRegister, counters by CAUSE + 8 * LinkCause."""
        registers = [r for r in LinkRegister if r != LinkRegister.CAUSE]
        offsets = [*registers, *(LinkRegister.CAUSE + 8 * cause for cause in LinkCause)]
        values = await self.hosts[core].read_all([Control.LINK + offset for offset in offsets])
        return dict(zip(offsets, values, strict=True))

    async def done(self, cores: tuple[int, ...] = CORES) -> int:
        """Wait until these cores are done; the cycles that took, at most 40,000."""
        cycles = 0
        while cycles < 40_000:
            await self.cycles(20)
            cycles += 20
            if all(getattr(self.dut, f"core__{n}__done").value == 1 for n in cores):
                break
        faults = [n for n in cores if getattr(self.dut, f"core__{n}__fault").value == 1]
        assert not faults, f"a queue or ring of core {faults} has faulted"
        assert cycles < 40_000, "the cores did not end"
        return cycles

    async def load(self, images: Mapping[int, Image]) -> None:
        """Put images into HBM, tell the cores where queues and rings are, and clear all cores."""
        for core, image in images.items():
            self.hbm[core][: image.hbm_bytes] = image.memory()
            regions = [(Control.QUEUE + 0x100 * q, region) for q, region in image.queues.items()]
            rings = [*image.rings, *[(0, 0)] * (self.cfg.dma.rings - len(image.rings))]
            regions += [(Control.RING + 0x100 * r, region) for r, region in enumerate(rings)]
            for at, (base, count) in regions:
                await self.hosts[core].write(at + QueueRegister.BASE, base)
                await self.hosts[core].write(at + QueueRegister.COUNT, count)
        assert RingRegister.BASE == QueueRegister.BASE and RingRegister.COUNT == QueueRegister.COUNT
        for core in CORES:
            await self.hosts[core].write(Control.CLEAR, 1)

    async def run(self, core: int) -> None:
        """Start a core, with what others have told it since `load`."""
        await self.hosts[core].write(Control.RUN, 3)

    def golden(self, images: Mapping[int, Image]) -> dict[int, RunResult]:
        """What golden machines leave."""
        cores = GoldenCores(self.cfg, CORES)
        cores.load(images)
        return cores.run()

    def same_hbm(self, want: Mapping[int, RunResult], images: Mapping[int, Image], *, but: str = "") -> None:
        """Both HBMs hold bit for bit what the golden pair left, outside of tensor `but` of core 0."""
        for core, result in want.items():
            assert not result.faults
            expected = np.full(HBM_BYTES, 0xFF, np.uint8)
            expected[: len(result.hbm)] = result.hbm
            differs = self.hbm[core] != expected
            if core == 0 and but:
                region = images[0].tensors[but]
                differs[region.offset : region.offset + region.bytes] = False
            wrong = np.flatnonzero(differs)
            names = {
                r.name
                for r in images[core].tensors.values()
                if ((wrong >= r.offset) & (wrong < r.offset + r.bytes)).any()
            }
            assert not len(wrong), f"core {core}: {len(wrong)} bytes of HBM differ, from {wrong[0]:#x} on, in {names}"

    async def same_sbuf(self, want: Mapping[int, RunResult]) -> None:
        """Both SBUFs likewise: a program of each core stores all of it. The HBMs hold other things then."""
        programs = [whole_sbuf(self.cfg, core_place(core)) for core in want]
        images = {program.core: build_image(program) for program in programs}
        await self.load(images)
        for core in images:
            await self.run(core)
        await self.done()
        for core, image in images.items():
            region = image.outputs["sbuf"]
            got = self.hbm[core][region.offset : region.offset + region.bytes].reshape(region.shape)
            wrong = np.argwhere(got != want[core].sbuf)
            assert not len(wrong), f"core {core}: {len(wrong)} bytes of SBUF differ, first at {wrong[0]}"


def _images(programs: tuple[Program, ...]) -> dict[int, Image]:
    images = build_images(programs)
    assert all(image.hbm_bytes <= HBM_BYTES for image in images.values())
    return images


def _right(made: Exchange, want: Mapping[int, RunResult]) -> None:
    """What the golden pair left is the sum; the bins that this proves."""
    for core, name in ((0, "back"), (0, "fetched"), (1, "sum"), (1, "added")):
        assert np.array_equal(want[core].outputs[name], made.total.view(np.uint32)), name
    for bin_ in ("write to SBUF", "write to HBM", "signal", "read", "computed there", "added there"):
        COVERAGE.hit(bin_)
    assert np.array_equal(want[1].outputs["sent"], made.sent.view(np.uint32))
    COVERAGE.hit("write by a GPSIMD core")


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def cores_exchange_tensors(dut: Any) -> None:
    """Over a link that refuses one flit in twelve, and all of them for 100 flits in the middle."""
    bench = PairBench(dut)
    await bench.start()
    await bench.up()
    made = exchange(bench.cfg, bench.rng)
    images = _images(made.programs)
    want = bench.golden(images)
    await bench.load(images)
    for core in (1, 0):
        await bench.run(core)
    noise = [cocotb.start_soon(bench.refuse(n)) for n in CORES]
    while int(dut.port__0__in_flight.value) == 0:  # the first tensors leave
        await bench.cycles(1)
    await bench.cycles(200)
    for task in noise:
        task.cancel()
    for level in (1, 0):
        for n in CORES:
            getattr(dut, f"port__{n}__refuse").value = level
        if level:
            await bench.cycles(100 * FLIT)
    for n in CORES:
        cocotb.start_soon(bench.refuse(n))
    cycles = await bench.done()
    bench.same_hbm(want, images)
    _right(made, want)
    await bench.same_sbuf(want)
    counts = [bench.counts(n) for n in CORES]
    for n in CORES:
        wrong = (
            *(LinkCause.BAD_UNIT, LinkCause.BAD_PACKET, LinkCause.CREDIT_OVERRUN, LinkCause.BAD_CREDIT, LinkCause.DOWN),
            *(LinkCause.UNRESOLVED, LinkCause.MALFORMED, LinkCause.SPURIOUS, LinkCause.FOREIGN),
        )
        for cause in wrong:
            assert counts[n][cause] == 0, f"port {n} counts {counts[n][cause]} {cause.name}"
        assert counts[n][LinkCause.REFUSED] > 100
        assert not any((await bench.endpoint(n)).values())
        shown = await bench.port_registers(n)
        assert shown[LinkRegister.STATE] == LinkState.UP and shown[LinkRegister.WIDTH] == 8 << 8 | 8
        assert shown[LinkRegister.SESSION] == (100 * (2 - n) + 1) << 16 | 100 * (n + 1) + 1
        after = bench.counts(n)
        for cause in LinkCause:
            value = shown[LinkRegister.CAUSE + 8 * cause]
            assert counts[n][cause] <= value <= after[cause], f"port {n} shows {value} {cause.name}"
    COVERAGE.hit("registers of the port")
    COVERAGE.when(all(c[LinkCause.REPLAY] > 0 for c in counts), "replay")
    COVERAGE.when(all(c[LinkCause.RETRAINED] > 0 for c in counts), "outage")
    refused, replays = (sum(c[cause] for c in counts) for cause in (LinkCause.REFUSED, LinkCause.REPLAY))
    dut._log.warning("both cores were done after %d cycles; %d flits refused, %d replays", cycles, refused, replays)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_signal_may_come_before_the_start(dut: Any) -> None:
    """Core 1 starts when all that core 0 sends has come with its signals, and finds them."""
    bench = PairBench(dut)
    await bench.start()
    await bench.up()
    made = exchange(bench.cfg, bench.rng)
    images = _images(made.programs)
    want = bench.golden(images)
    await bench.load(images)
    await bench.run(0)
    semaphores = [Control.SEMAPHORE + 8 * n for n in range(bench.cfg.issue.semaphores)]
    told = [0] * len(semaphores)
    for _ in range(1000):
        if sum(told) == SIGNALS:
            break
        await bench.cycles(10)
        told = await bench.hosts[1].read_all(semaphores)
    assert sum(told) == SIGNALS, f"signals at core 1, which has not started: {[n for n in told if n]}"
    await bench.cycles(int(bench.rng.integers(300)))
    await bench.run(1)
    await bench.done()
    bench.same_hbm(want, images)
    _right(made, want)
    await bench.same_sbuf(want)
    COVERAGE.hit("signals before the start")


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def packets_for_another_core_are_refused(dut: Any) -> None:
    """Core 0 writes to and reads from a core that is not at the link: core 1 refuses, counts, tells its port."""
    bench = PairBench(dut)
    await bench.start()
    await bench.up()
    programs, packets = misdirected(bench.cfg)
    images = _images(programs)
    before = bench.hbm[1].copy()
    await bench.load({0: images[0]})
    await bench.run(0)
    for _ in range(1000):
        await bench.cycles(10)
        if dut.core__0__fault.value == 1:
            break
    cores = GoldenCores(bench.cfg, CORES)
    cores.load({n: images[n] for n in CORES})
    (want,) = cores.run()[0].faults
    assert want.cause == Cause.BUS_ERROR
    at = Control.RING + 0x100 * int(want.queue.split()[1])
    fault, address = await bench.hosts[0].read_all([at + RingRegister.FAULT, at + RingRegister.FAULT_ADDRESS])
    assert (fault & 0xFF, fault >> 16, address) == (want.cause, want.sequence, want.address)
    COVERAGE.hit("refused read")
    assert np.array_equal(bench.hbm[1], before), "a packet for another core has been executed"
    counted = await bench.endpoint(1)
    first = want.address >> 44
    assert counted[EndpointRegister.REFUSED] == counted[EndpointRegister.FOREIGN] == packets
    assert counted[EndpointRegister.REFUSED_ADDRESS] >> 44 == first and counted[EndpointRegister.REFUSED_SOURCE] == 0
    assert counted[EndpointRegister.FAILED] == counted[EndpointRegister.DROPPED] == 0
    assert bench.counts(1)[LinkCause.FOREIGN] == packets and bench.counts(0)[LinkCause.FOREIGN] == 0
    assert not any((await bench.endpoint(0)).values())
    COVERAGE.hit("refused write")


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_lost_link_ends_reads(dut: Any) -> None:
    """Port 1 begins again while core 0 reads: that ring faults, the others exchange tensors over the new session."""
    bench = PairBench(dut)
    await bench.start()
    await bench.up()
    made = exchange(bench.cfg, bench.rng, lost=True)
    images = _images(made.programs)
    want = bench.golden(images)
    await bench.load(images)
    await bench.run(0)
    while int(dut.port__0__in_flight.value) == 0:
        await bench.cycles(1)
    await bench.cycles(int(bench.rng.integers(1, 300)))
    dut.port__1__restart.value = 1
    await bench.cycles(4)
    dut.port__1__restart.value = 0
    for _ in range(1000):
        await bench.cycles(10)
        if dut.core__0__fault.value == 1:
            break
    assert dut.core__0__fault.value == 1, "the read goes on waiting"
    await bench.up()
    assert all(bench.counts(n)[LinkCause.DOWN] > 0 for n in CORES)
    await bench.cycles(2000)  # what the ring had asked for has come
    await bench.run(1)
    region = images[0].outputs["fetched"]
    fetched = bench.hbm[0][region.offset : region.offset + region.bytes].view(np.float32).reshape(region.shape)
    for _ in range(1000):
        await bench.cycles(40)
        if np.array_equal(fetched, made.total):
            break
    bench.same_hbm(want, images, but="waste")
    _right(made, want)
    assert dut.core__1__fault.value == 0
    assert (
        (await bench.endpoint(0))[EndpointRegister.REFUSED] == 0 == (await bench.endpoint(1))[EndpointRegister.REFUSED]
    )
    COVERAGE.hit("after a lost link")
    COVERAGE.require_all()
