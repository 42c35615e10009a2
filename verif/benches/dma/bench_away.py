"""Descriptors with an end, or a signal, in another core: golden memories on both sides, and what goes wrong between."""

from dataclasses import replace
from typing import Any

import cocotb
import numpy as np

from rtl.contract.config_sections import DMA_CLASSES
from rtl.contract.descriptor import DmaAdd
from rtl.contract.isa import Cause
from rtl.contract.memmap import Space, address
from rtl.dma.fabric.packets import CHUNK_BYTES, SLOTS_EACH
from verif.bench import Run, noticed_by
from verif.benches.dma.endpoint_driver import FEWER, OTHER_LINKS, OUTBOUND, EndpointBench
from verif.benches.dma.requests import CORE
from verif.benches.dma.transfers import FAR, alternating, cut, transfer
from verif.golden.dma import added, check
from verif.golden.endpoint import Peer

_FAULTS = (
    *noticed_by(
        "copies_and_signals_arrive",
        "the signal goes with the first packet",
        "a signal that reaches into the next beat is cut",
        "a packet loses its add",
        "pieces of descriptors are sent as their banks have them",
        "a place of a link is taken in any bank",
        "packets to HBM of another core reach over the end of a window",
        "a signal of a copy inside leaves in class 0",
        "a signal of a copy inside that is for another core is done here",
    ),
    *noticed_by("a_far_core_that_refuses_halts_the_ring", "an error response is taken for data"),
)

RUNS = (
    Run("dma", options={"link": True}, faults=_FAULTS),
    Run("dma", options={"link": True}, config=FEWER, seeds=(1,)),
    *OTHER_LINKS,
)

_BEYOND = address(Space.HBM, 1 << 20, core_id=FAR)
_HERE = address(Space.HBM, 0x8000, core_id=CORE)


async def _started(dut: Any) -> tuple[EndpointBench, Peer]:
    """A bench, and the core at the other end of its link."""
    bench = EndpointBench(dut)
    await bench.start()
    rng, cfg = bench.rng, bench.cfg
    bench.far = far = Peer(
        cfg,
        FAR,
        rng.integers(0, 256, cfg.hbm.capacity_mib << 20, np.uint8),
        rng.integers(0, 256, (cfg.partitions, cfg.sbuf.partition_bytes), np.uint8),
    )
    return bench, far


def _read(size: int) -> dict[str, int]:
    """A row of the far core's HBM, to here."""
    return {"source": _BEYOND, "destination": _HERE, "row_bytes": size, "count0": 1, "count1": 1, "count2": 1}


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def copies_and_signals_arrive(dut: Any) -> None:
    """Descriptors with one end elsewhere, or none and a signal there: what arrives there and here, in which order."""
    bench, far = await _started(dut)
    rng, cfg = bench.rng, bench.cfg
    rooms = cocotb.start_soon(bench.rooms())
    for n in range(12):
        if n == 6:  # from here on there is always room
            rooms.cancel()
            dut.request_room.value = (1 << DMA_CLASSES) - 1
        batch = [*(transfer(cfg, rng, n, OUTBOUND) for n in range(7)), alternating(cfg, rng, 7)]
        due: dict[int, tuple[dict[str, int], int, list[tuple[int, bytes]]]] = {}
        for d in batch:
            assert check(d, cfg, CORE, link=True)[0] == Cause.NONE, d
            writes: list[tuple[int, bytes]] = []
            near = Peer(cfg, CORE, bench.golden.hbm, bench.golden.sbuf)
            for i in range(d["count0"]):
                a = d["source"] + i * d.get("source_step0", 0)
                b = d["destination"] + i * d.get("destination_step0", 0)
                giver, taker = (near if at >> 44 == CORE else far for at in (a, b))
                data = giver.window(a, d["row_bytes"]).tobytes()
                if d.get("add"):
                    there = taker.window(b, len(data))
                    data = added(there, np.frombuffer(data, np.uint8), DmaAdd(d["add"])).tobytes()
                writes.append((b, data))
                if taker is near:
                    near.window(b, len(data))[:] = np.frombuffer(data, np.uint8)
            due[d["signal_value"]] = (d, d["signal_address"] >> 44, writes)
            if d["signal_address"] >> 44 == CORE:
                index = (d["signal_address"] & 0xFFFFFFFF) // 4
                local = writes if d["destination"] >> 44 == CORE else []
                bench.signals[d["signal_value"]] = (index, d["signal_update"], local)

        def arrived(value: int, due: dict[int, Any] = due) -> None:
            d, core, writes = due.pop(value)
            assert core == FAR and bench.request_class == d["class_"], f"class {bench.request_class} for {d}"
            for at, data in writes:
                taker = far if at >> 44 == FAR else Peer(cfg, CORE, bench.hbm, bench.sbuf)
                assert taker.window(at, len(data)).tobytes() == data, f"signal {value} before all data of {d}"

        bench.far_checks = [arrived]
        for n, d in enumerate(batch):
            bench.host.submit(n % len(bench.host.rings), [d])
        await bench.host.idle()
        await bench.quiet()
        for d in batch:
            starts = [d["destination"] + i * d.get("destination_step0", 0) for i in range(d["count0"])]
            pieces = [at for start in starts for at in cut(cfg, start, d["row_bytes"])]
            if d["destination"] >> 44 == FAR:
                left = [at for at in bench.written if at in pieces]
                assert left == pieces, f"pieces of {d} left in another order"
        bench.written.clear()
        for d, core, writes in due.values():
            assert core == CORE, f"the signal of {d} never left"
            for at, data in writes:
                taker = far if at >> 44 == FAR else Peer(cfg, CORE, bench.hbm, bench.sbuf)
                assert taker.window(at, len(data)).tobytes() == data, f"{d}"
        assert not bench.signals, f"{bench.signals}"
        bench.same()
        assert not far.refused
        for ring in range(len(bench.host.rings)):
            assert bench.host.fault(ring)[0] == Cause.NONE


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_far_core_that_refuses_halts_the_ring(dut: Any) -> None:
    """It has less HBM: the ring halts with the address that was asked, and nothing is written."""
    bench, far = await _started(dut)
    far.cfg = replace(bench.cfg, hbm=replace(bench.cfg.hbm, capacity_mib=1))
    bench.host.submit(0, [_read(900)])
    await bench.host.idle()
    await bench.quiet()
    cause, _, at = bench.host.fault(0)
    assert (cause, at) == (Cause.BUS_ERROR, _BEYOND)
    bench.same()
    OUTBOUND.hit("error response")


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def reads_end_with_the_link(dut: Any) -> None:
    """The link is lost while reads are under way: they end; answers that come all the same are dropped."""
    bench, _ = await _started(dut)
    bench.mute = []
    dma = bench.cfg.dma
    places = SLOTS_EACH - (DMA_CLASSES - 1) * dma.link_movers  # one of each bank is left to each other class
    asks = places + 7
    bench.host.submit(1, [_read(CHUNK_BYTES * asks - 300)])
    while len(bench.mute) <= places - dma.link_movers:
        await bench.cycles(1)
    await bench.cycles(500)
    asked = len(bench.mute)  # all places, but for those of banks whose turn it was not
    assert asked <= places
    dut.down.value = 1
    await bench.cycles(1)
    dut.down.value = 0
    for _ in range(2000):
        await bench.cycles(5)
        if len(bench.mute) == asks:  # the rest of the row is asked for: the link may be up again
            break
    await bench.cycles(100)
    old, late = bench.mute[:asked], bench.mute[asked:]  # the late ones have places that old ones had
    for class_, answer in old:
        bench.responses_in.send(class_, answer)
    await bench.responses_in.stream.drained()
    await bench.cycles(100)
    assert int(dut.dropped.value) == len(old), "an answer from before is taken for one to a later read"
    dut.down.value = 1
    await bench.cycles(1)
    dut.down.value = 0
    await bench.host.idle()
    assert bench.host.fault(1)[0] == Cause.BUS_ERROR
    for class_, answer in late:
        bench.responses_in.send(class_, answer)
    await bench.responses_in.stream.drained()
    await bench.quiet()
    assert int(dut.dropped.value) == len(bench.mute) == asks
    OUTBOUND.hit("link lost")


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def an_answer_to_another_endpoint_is_dropped(dut: Any) -> None:
    """One that somebody waits for, but sent to another endpoint. The right one still finds its place."""
    bench, far = await _started(dut)
    bench.mute = []
    bench.host.submit(0, [_read(100)])
    while not bench.mute:
        await bench.cycles(1)
    ((class_, answer),) = bench.mute
    near = Peer(bench.cfg, CORE, bench.golden.hbm, bench.golden.sbuf)
    near.window(_HERE, 100)[:] = far.window(_BEYOND, 100)
    bench.responses_in.send(class_, answer, endpoint=bench.responses_in.endpoint ^ 4)
    await bench.responses_in.stream.drained()
    await bench.cycles(20)
    assert (int(dut.dropped.value), int(dut.foreign.value)) == (1, 1)
    bench.responses_in.send(class_, answer)
    await bench.host.idle()
    await bench.quiet()
    assert int(dut.dropped.value) == 1 and bench.host.fault(0)[0] == Cause.NONE
    OUTBOUND.hit("answer to another endpoint")
    bench.same()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def covered(dut: Any) -> None:
    """All of the above has happened."""
    if EndpointBench(dut).cfg.sbuf.adders:
        OUTBOUND.require_all()
