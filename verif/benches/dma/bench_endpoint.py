"""Requests of other cores, with an HBM that commits 1 to 500 cycles after the data, and rates both ways."""

from typing import Any

import cocotb
import numpy as np

from rtl.contract.descriptor import DmaAdd
from rtl.contract.link import PacketOpcode
from rtl.contract.memmap import PARTITION_STRIDE_BYTES, Space, address
from rtl.dma.fabric.packets import CHUNK_BYTES, WINDOW_BYTES
from verif.bench import Run, noticed_by
from verif.benches.dma.endpoint_driver import COVERAGE, ERRORS, FEWER, OTHER_LINKS, EndpointBench
from verif.benches.dma.requests import CORE, Requests
from verif.benches.dma.transfers import FAR
from verif.golden.endpoint import Packet, Peer

_FAULTS = (
    *noticed_by(
        "executes_requests_in_order",
        "a signal to an endpoint does not wait for the writes before it",
        "a read of an endpoint does not wait for the writes before it",
        "a read that is refused has no answer",
        "the signal of a write goes out before the write",
        "a payload may leave its memory by its own length",
        "a fetch-add of 8 bytes loses its carry",
        "a packet for another endpoint is executed",
        "an endpoint adds whatever the packet's alignment",
    ),
    *noticed_by(
        "an_error_of_hbm_fails_its_class",
        "a failed class of an endpoint stays failed",
        "a clear hides a write that fails in its cycle",
        "the clock of the DMA does not run for a clear",
    ),
    *noticed_by("last_write_stays", "writes to HBM are made by the mover of their 128 bytes"),
)

RUNS = (
    Run("dma", options={"link": True}, faults=_FAULTS),
    Run(
        "dma",
        options={"link": True},
        config=FEWER,
        faults=("a packet that adds is admitted without adders",),
        seeds=(1,),
    ),
    *OTHER_LINKS,
)


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def executes_requests_in_order(dut: Any) -> None:
    """Random requests of several cores and classes, with bad ones between them, against the golden core."""
    bench = EndpointBench(dut)
    await bench.start()
    maker = Requests(bench.cfg, bench.rng, bench.requests_in.endpoint)
    for _ in range(6):
        maker.epoch()
        used = set()
        for class_, packet, short, endpoint in maker.batch(40, COVERAGE):
            used.add(class_)
            golden = bench.golden
            refused = len(golden.refused)
            answer = golden.refuse(packet, endpoint) if short else golden.execute(packet, endpoint)
            if answer is not None:
                bench.expected[packet.header["tag"]] = (class_, packet.header["source"], answer)
                COVERAGE.when(len(golden.refused) > refused, "refused read")
            elif len(golden.refused) > refused:
                COVERAGE.hit("refused write")
            if len(golden.refused) == refused:
                maker.done(class_, packet, golden)
                if packet.signal is not None:
                    s = packet.signal
                    bench.signals[s["value"]] = (s["index"], s["update"], maker.before(class_))
            bench.requests_in.send(class_, packet, cut=short, endpoint=endpoint)
        COVERAGE.when(len(used) > 1, "several classes at once")
        await bench.quiet()
        assert not bench.signals, f"signals never sent: {bench.signals}"
        bench.same()
        assert int(dut.refused.value) == len(bench.golden.refused)
        assert int(dut.foreign.value) == bench.golden.foreign
        if bench.golden.refused:
            first = (int(dut.refused_address.value), int(dut.refused_source.value))
            assert first == bench.golden.refused[0], f"{first} instead of {bench.golden.refused[0]}"
    assert int(dut.failed.value) == 0 and int(dut.dropped.value) == 0
    COVERAGE.require_all()


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def last_write_stays(dut: Any) -> None:
    """Writes of a class to bytes that those before it wrote, in HBM and SBUF, at some distance from each other."""
    bench = EndpointBench(dut)
    await bench.start()
    rng, cfg = bench.rng, bench.cfg
    for n in range(300):
        size = int(rng.integers(CHUNK_BYTES // 2, CHUNK_BYTES + 1))
        at = n // 12 % 3 * WINDOW_BYTES + int(rng.integers(2)) * 128
        place = address(Space.HBM, at, core_id=CORE)
        if n % 3 == 0:
            at = int(rng.integers(2)) * 200
            place = address(Space.SBUF, int(rng.integers(cfg.partitions)) * PARTITION_STRIDE_BYTES + at, core_id=CORE)
        packet = Packet(
            {"opcode": int(PacketOpcode.WRITE), "length_bytes": size, "source": 7, "address": place}, rng.bytes(size)
        )
        bench.golden.execute(packet)
        bench.requests_in.send(0, packet)
    await bench.quiet()
    bench.same()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def an_error_of_hbm_fails_its_class(dut: Any) -> None:
    """Signals of a class are dropped from a write that HBM refuses on, over a start that does not clear, until
    a clear; those of other classes are not."""
    bench = EndpointBench(dut, commit=60)
    await bench.start()
    index = 3
    there = address(Space.SEMAPHORES, 4 * index, core_id=CORE)
    bench.agent.bad = range(0x2000, 0x2010)
    sent = failed = 0

    async def write(class_: int, at: int, *, dropped: bool, alone: bool = False, clearing: bool = False) -> None:
        """A write with its signal, or a signal alone. `clearing`: until it was dropped."""
        nonlocal sent, failed
        sent, failed = sent + 1, failed + dropped
        header = {"opcode": int(PacketOpcode.SIGNAL), "length_bytes": 0, "source": 7, "address": there}
        payload = b"" if alone else bench.rng.bytes(32)
        if not alone:
            at = address(Space.HBM, at, core_id=CORE)
            header |= {"opcode": int(PacketOpcode.WRITE), "length_bytes": len(payload), "address": at}
        packet = Packet(header, payload, {"index": index, "update": 1, "value": sent})
        if not dropped:
            bench.signals[sent] = (index, 1, [] if alone else [(at, payload)])
        bench.golden.execute(packet)
        bench.requests_in.send(class_, packet)
        while clearing and int(dut.failed.value) != failed:
            await bench.cycles(1)
        dut.clear.value = 0
        await bench.quiet()
        assert not bench.signals, "a signal of a class without an error was dropped"
        assert int(dut.failed.value) == failed, f"{int(dut.failed.value)} signals were dropped, not {failed}"

    good, bad = (int(c) for c in bench.rng.permutation(8)[:2])
    await write(bad, 0x1000, dropped=False)
    await write(bad, 0x2000, dropped=True)
    for alone in (False, True):
        await write(bad, 0x1000, dropped=True, alone=alone)
        await write(good, 0x3000, dropped=False, alone=alone)
    ERRORS.hit("failed class")
    await bench.host.restart(clear=False)
    await write(bad, 0x1000, dropped=True)
    await write(good, 0x3000, dropped=False)
    for forget in (bench.host.clear, bench.host.restart):
        await forget()
        await write(bad, 0x1000, dropped=False)
        await write(bad, 0x1000, dropped=False, alone=True)
        await write(bad, 0x2000, dropped=True)
        await write(bad, 0x1000, dropped=True)
    ERRORS.hit("failed class forgotten")
    await bench.host.clear()
    dut.clear.value = 1  # in every cycle, so in that of the error too: what waited for the write is dropped
    await write(bad, 0x2000, dropped=True, clearing=True)
    ERRORS.hit("error in the cycle of a clear")
    await write(bad, 0x1000, dropped=False)
    bench.same()
    ERRORS.require_all()


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def moves_as_much_as_its_movers(dut: Any) -> None:
    """Packets of 448 bytes that come in, and transfers both ways, at the rate of the movers of a link: 16 bytes a cycle
    each, and seven of nine cycles a beat of 64. HBM has 32 a cycle here, and is 100 cycles away."""
    bench = EndpointBench(dut, stalls="never", commit=100)
    await bench.start()
    cfg = bench.cfg
    rates: dict[str, float] = {}
    bench.ports.late = lambda: 0
    formats = [add for add in DmaAdd if cfg.sbuf.adders or add == DmaAdd.COPY]
    for space, add in ((Space.HBM, DmaAdd.COPY), *((Space.SBUF, add) for add in formats)):
        packets = 256
        for n in range(packets):
            at = n * 512 if space == Space.HBM else n % 8 * PARTITION_STRIDE_BYTES + n // 8 % 16 * 512
            header = {"opcode": int(PacketOpcode.WRITE), "length_bytes": 448, "source": 7, "flags": int(add) << 1}
            header["address"] = address(space, at, core_id=CORE)
            packet = Packet(header, bench.rng.bytes(448))
            bench.golden.execute(packet)
            bench.requests_in.send(0, packet)
        begin = bench.now
        await bench.quiet()
        rates[f"in to {space.name}{f', adds {add.name}' if add else ''}"] = packets * 448 / (bench.now - begin)
    bench.same()

    far = Peer(cfg, FAR, np.zeros(1 << 17, np.uint8), np.zeros_like(bench.sbuf))
    bench.far = far
    for space in (Space.HBM, Space.SBUF):
        for way in ("out of", "read into"):
            count = 256
            ends = [address(space, 0, core_id=CORE), address(Space.HBM, 0, core_id=FAR)]
            steps = [448 if space == Space.HBM else PARTITION_STRIDE_BYTES, 448]
            if way == "read into":
                ends.reverse()
                steps.reverse()
            d = {"source": ends[0], "destination": ends[1], "row_bytes": 448, "count2": 1}
            rows = count if space == Space.HBM else cfg.partitions
            d |= {"count0": rows, "source_step0": steps[0], "destination_step0": steps[1], "count1": count // rows}
            begin = bench.now
            bench.host.submit(0, [d])
            await bench.host.idle()
            rates[f"{way} {space.name}"] = count * 448 / (bench.now - begin)
    most = min(16 * cfg.dma.link_movers, 448 / 9)
    for what, rate in rates.items():
        dut._log.warning("%s: %.1f bytes a cycle", what, rate)
        if not bench.plant:
            assert "adds" not in what or rate >= 0.95 * rates["in to SBUF"], f"{what}: {rate:.1f} bytes a cycle"
            least = 0.9 * most if "SBUF" in what else min(0.9 * most, 20)
            assert rate > least, f"{what}: {rate:.1f} bytes a cycle, not {least:.1f}"
