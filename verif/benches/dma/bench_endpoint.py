"""Requests of other cores, and transfers to them, with an HBM that commits 1 to 500 cycles after the data."""

from dataclasses import replace
from typing import Any

import cocotb
import numpy as np

from rtl.contract.config import load
from rtl.contract.isa import Cause, DmaAdd
from rtl.contract.link import PacketOpcode
from rtl.contract.memmap import PARTITION_STRIDE_BYTES, Space, address
from rtl.dma.fabric.packets import CHUNK_BYTES, SLOTS_EACH, WINDOW_BYTES
from verif.bench import Run, noticed_by
from verif.benches.dma.endpoint_driver import COVERAGE, ERRORS, FEWER, OUTBOUND, EndpointBench
from verif.benches.dma.requests import CORE, Requests
from verif.benches.dma.transfers import FAR, alternating, cut, transfer
from verif.golden.dma import added, check
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
    *noticed_by(
        "transfers_to_and_from_another_core",
        "the signal goes with the first packet",
        "an error response is taken for data",
        "a signal that reaches into the next beat is cut",
        "a packet loses its add",
        "pieces of descriptors are sent as their banks have them",
        "a place of a link is taken in any bank",
        "packets to HBM of another core reach over the end of a window",
        "a signal of a copy inside leaves in class 0",
        "a signal of a copy inside that is for another core is done here",
    ),
)

_FAULTS += noticed_by("last_write_stays", "writes to HBM are made by movers of a link in turn")

RUNS = (
    Run("dma", options={"link": True}, faults=_FAULTS),
    Run(
        "dma",
        options={"link": True},
        config=FEWER,
        faults=("a packet that adds is admitted without adders",),
        seeds=(1,),
    ),
    *(
        Run("dma", options={"link": True}, config=load("tiny", settings), seeds=(1,))
        for settings in (["dma.link_movers=1"], ["dma.link_movers=4", "hbm.ports=2"])
    ),
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
    for n in range(120):
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


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def transfers_to_and_from_another_core(dut: Any) -> None:
    """Descriptors with one end elsewhere: what arrives there and here, the signals, and errors of the far core."""
    bench = EndpointBench(dut)
    await bench.start()
    rng, cfg = bench.rng, bench.cfg
    far = Peer(
        cfg,
        FAR,
        rng.integers(0, 256, cfg.hbm.capacity_mib << 20, np.uint8),
        rng.integers(0, 256, (cfg.partitions, cfg.sbuf.partition_bytes), np.uint8),
    )
    bench.far = far
    for _ in range(12):
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

    # A far core that refuses, since it has less HBM: the ring halts with the address that was asked.
    beyond = address(Space.HBM, 1 << 20, core_id=FAR)
    far.cfg = replace(cfg, hbm=replace(cfg.hbm, capacity_mib=1))
    bench.host.submit(0, [{"source": beyond, "destination": address(Space.HBM, 0x8000, core_id=CORE),
                           "row_bytes": 900, "count0": 1, "count1": 1, "count2": 1}])  # fmt: skip
    await bench.host.idle()
    await bench.quiet()
    cause, _, _ = bench.host.fault(0)
    OUTBOUND.hit("error response")
    assert cause == Cause.BUS_ERROR
    bench.same()

    # The link is lost while reads are under way: they end; answers that come all the same are dropped.
    far.cfg = cfg
    await bench.host.restart()
    bench.mute = []
    asks = SLOTS_EACH + 7
    d = {
        "source": beyond,
        "destination": address(Space.HBM, 0x8000, core_id=CORE),
        "row_bytes": CHUNK_BYTES * asks - 300,
    }
    bench.host.submit(1, [{**d, "count0": 1, "count1": 1, "count2": 1}])
    while len(bench.mute) <= SLOTS_EACH - cfg.dma.link_movers:
        await bench.cycles(1)
    await bench.cycles(500)
    asked = len(bench.mute)  # all places, but for those of banks whose turn it was not
    assert asked <= SLOTS_EACH
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

    # An answer that somebody waits for, but sent to another endpoint: dropped. The right one still finds its place.
    await bench.host.restart()
    bench.mute = []
    bench.host.submit(0, [{**d, "row_bytes": 100, "count0": 1, "count1": 1, "count2": 1}])
    while not bench.mute:
        await bench.cycles(1)
    ((class_, answer),) = bench.mute
    near = Peer(cfg, CORE, bench.golden.hbm, bench.golden.sbuf)
    near.window(d["destination"], 100)[:] = far.window(beyond, 100)
    bench.responses_in.send(class_, answer, endpoint=bench.responses_in.endpoint ^ 4)
    await bench.responses_in.stream.drained()
    await bench.cycles(20)
    assert (int(dut.dropped.value), int(dut.foreign.value)) == (asks + 1, 1)
    bench.responses_in.send(class_, answer)
    await bench.host.idle()
    await bench.quiet()
    assert int(dut.dropped.value) == asks + 1 and bench.host.fault(0)[0] == Cause.NONE
    OUTBOUND.hit("answer to another endpoint")
    bench.same()
    OUTBOUND.hit("link lost")
    if bench.cfg.sbuf.adders:
        OUTBOUND.require_all()


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
