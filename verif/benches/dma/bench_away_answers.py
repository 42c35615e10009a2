"""What others read of a core is answered while none of its own requests can leave."""

from typing import Any

import cocotb
import numpy as np

from rtl.contract.config import load
from rtl.contract.config_sections import DMA_CLASSES
from rtl.contract.isa import Cause, Update
from rtl.contract.link import PacketOpcode
from rtl.contract.memmap import Space, address
from verif.bench import Run
from verif.benches.dma.bench_away_classes import sends
from verif.benches.dma.endpoint_driver import EndpointBench
from verif.benches.dma.requests import CORE
from verif.benches.dma.transfers import FAR
from verif.checks.coverage import Coverage
from verif.golden.endpoint import Packet, Peer

RUNS = tuple(
    Run(
        "dma",
        options={"link": True},
        config=load("tiny", ["dma.rings=8", f"dma.classes={n}"]),
        seeds=(1,),
        regress=n == 1,
    )
    for n in (4, 1)
)

COVERAGE = Coverage("endpoint answers", ["with the link", "after it was lost"])


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def answers_wait_for_no_request(dut: Any) -> None:
    """No class has room, all have more writes and reads than places, and signals of copies inside; the link is lost, so
    that as many reads again are asked for. What others read here is answered all the same. Then all that was not lost
    ends."""
    bench = EndpointBench(dut, stalls="never")
    await bench.start()
    cfg = bench.cfg
    sbuf = np.zeros((cfg.partitions, cfg.sbuf.partition_bytes), np.uint8)
    bench.far = Peer(cfg, FAR, np.zeros(cfg.hbm.capacity_mib << 20, np.uint8), sbuf)
    bench.far_checks = [lambda value: None]
    dut.request_room.value = 0
    for c in range(cfg.dma.classes):
        far, here = 0x100000 + 0x20000 * c, 0x180000 + 0x20000 * c
        signals = {"signal_address": address(Space.SEMAPHORES, 4, core_id=CORE), "signal_value": 1000 * (c + 1)}
        bench.signals[1000 * (c + 1)] = (1, Update.ADD, [])
        read = sends(far, here, 100, 700, c, 0) | signals
        read |= {"source": address(Space.HBM, far, core_id=FAR), "destination": address(Space.HBM, here, core_id=CORE)}
        local = sends(0x1000, 0x2000, 1, 64, c, 7) | {"destination": address(Space.HBM, 0x2000, core_id=CORE)}
        bench.host.submit(2 * c, [local, sends(0x20000, far, 100, 700, c, 2)])
        bench.host.submit(2 * c + 1, [read])
    for lost in (False, True):
        if lost:
            dut.down.value = 1
            await bench.cycles(1)
            dut.down.value = 0
        await bench.cycles(4000)
        for tag in range(8):
            at = address(Space.HBM, 0x1000 + 64 * tag, core_id=CORE)
            header = {"opcode": PacketOpcode.READ, "address": at, "length_bytes": 64, "tag": tag, "source": FAR & 0xFFF}
            packet = Packet(header)
            answer = bench.golden.execute(packet)
            assert answer is not None
            bench.expected[tag] = (tag % 4, header["source"], answer)
            bench.requests_in.send(tag % 4, packet)
        for _ in range(100):
            await bench.cycles(20)
            if not bench.expected:
                break
        assert not bench.expected, f"{len(bench.expected)} reads of others have no answer, link lost: {lost}"
        assert not any(bench.left), f"packets left without room: {bench.left}"
        COVERAGE.hit("after it was lost" if lost else "with the link")
    dut.request_room.value = (1 << DMA_CLASSES) - 1
    await bench.host.idle()
    await bench.quiet()
    ends = [bench.host.fault(ring)[0] for ring in range(2 * cfg.dma.classes)]
    assert ends == [Cause.NONE, Cause.BUS_ERROR] * cfg.dma.classes


@cocotb.test()
async def covered(dut: Any) -> None:
    COVERAGE.require_all()
