"""Cores at any place, with two maps of endpoints: what packets call them, and who cannot be reached."""

from typing import Any

import cocotb
import numpy as np

from rtl.contract.endpoint_map import EndpointMap
from rtl.contract.isa import Cause, Update
from rtl.contract.link import PacketOpcode
from rtl.contract.memmap import Space, address, core_id
from verif.bench import Run
from verif.benches.dma.endpoint_driver import FEWER, EndpointBench
from verif.checks.coverage import Coverage
from verif.golden.dma import check
from verif.golden.endpoint import Packet, Peer

RUNS = (
    Run("dma", options={"link": True}, faults=("a place that has no endpoint number is taken for one that has",)),
    Run(
        "dma",
        options={"link": True},
        config=FEWER,
        faults=("an endpoint number is the low bits of a place whatever the map",),
    ),
)

COVERAGE = Coverage(
    "endpoint numbers",
    [
        "read",
        "write",
        "no number here",
        "no number there",
        "the low bits of one that has a number",
        "a request for who has no number",
        "a request that is answered",
        "signal beside a copy inside",
        "signal to who has no number",
    ],
)
_WIDTHS = (4, 6, 4, 4)
_BYTES = 600
_HERE, _BACK, _THERE = 0x1000, 0x2000, 0x3000


def _place(rng: np.random.Generator, numbers: EndpointMap) -> tuple[int, int, int, int]:
    """One that has a number, or in one part of four may have none."""
    most = _WIDTHS if rng.random() < 0.25 else numbers.bits
    rack, server, chip, core = (int(rng.integers(1 << bits)) for bits in most)
    return rack, server, chip, core


def _request(golden: Peer, number: int, endpoint: int, rng: np.random.Generator) -> Packet:
    """A write or a read of `golden`, whatever packets call it."""
    opcode = PacketOpcode.READ if rng.integers(2) else PacketOpcode.WRITE
    at = address(Space.HBM, _HERE + 64 * (number % 8), core_id=golden.core_id)
    header = {"opcode": int(opcode), "length_bytes": 64, "source": endpoint ^ 1, "tag": number, "address": at}
    return Packet(header, rng.bytes(64) if opcode == PacketOpcode.WRITE else b"")


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def places_have_the_numbers_of_the_map(dut: Any) -> None:
    """A copy to or from another core: endpoint and source of its packets, or NO_ROUTE; the same of a signal of
    a copy inside; then a request for this core."""
    bench = EndpointBench(dut)
    await bench.start()
    rng, cfg, golden = bench.rng, bench.cfg, bench.golden
    numbers = cfg.fabric.endpoint_map
    far = Peer(cfg, 0, rng.integers(0, 256, 1 << 16, np.uint8), np.zeros((1, 1), np.uint8))
    bench.far = far
    for n in range(60):
        own, there = _place(rng, numbers), _place(rng, numbers)
        if rng.random() < 0.2:  # the same but for a bit that the map has not
            part = int(rng.integers(4))
            above = range(numbers.bits[part], _WIDTHS[part])
            if above:
                there = tuple(v ^ (p == part) << above[0] for p, v in enumerate(own))  # type: ignore[assignment]
                COVERAGE.when(numbers.has(own), "the low bits of one that has a number")
        if own == there:
            continue
        golden.core_id, far.core_id = core_id(*own), core_id(*there)
        dut.core_id.value = golden.core_id
        bench.responses_in.endpoint = golden.number or 0
        away = bool(rng.integers(2))
        ends = [address(Space.HBM, _THERE, core_id=far.core_id), address(Space.HBM, _BACK, core_id=golden.core_id)]
        if away:
            ends[1] = address(Space.HBM, _HERE, core_id=golden.core_id)
            ends.reverse()
        d = {"source": ends[0], "destination": ends[1], "row_bytes": _BYTES, "count0": 1, "count1": 1, "count2": 1}
        inside = {**d, "source": address(Space.HBM, 0, core_id=golden.core_id)}
        inside["destination"] = address(Space.HBM, 0x6000, core_id=golden.core_id)
        inside |= {"signal_address": address(Space.SEMAPHORES, 4 * n, core_id=far.core_id), "signal_update": Update.SET}
        far.signals.clear()
        cause, at = check(d, cfg, golden.core_id, link=True)
        told = check(inside, cfg, golden.core_id, link=True)
        bench.host.submit(1, [inside])
        bench.host.submit(0, [d])
        await bench.host.idle()
        await bench.quiet()
        fault = bench.host.fault(0)
        assert (fault[0], fault[2] if cause else at) == (cause, at), f"{fault} from {own} to {there}, not {cause.name}"
        fault = bench.host.fault(1)
        assert (fault[0], fault[2]) == told, f"{fault} of a signal from {own} to {there}, not {told[0].name}"
        assert far.signals == ([] if told[0] else [(n, Update.SET, 0)]), f"signals {far.signals} at {there}"
        if told[0] == Cause.NONE:
            golden.hbm[0x6000 : 0x6000 + _BYTES] = golden.hbm[:_BYTES]
        COVERAGE.hit("signal to who has no number" if told[0] else "signal beside a copy inside")
        if cause == Cause.NONE:
            COVERAGE.hit("write" if away else "read")
            if not away:
                golden.hbm[_BACK : _BACK + _BYTES] = far.hbm[_THERE : _THERE + _BYTES]
            sent = far.hbm[_THERE : _THERE + _BYTES]
            assert not away or np.array_equal(sent, golden.hbm[_HERE : _HERE + _BYTES]), f"from {own} to {there}"
        else:
            assert cause == Cause.NO_ROUTE
            COVERAGE.hit("no number there" if golden.number is not None else "no number here")
        # What some switch would bring here if it looked at the low bits of each part.
        endpoint = numbers.encode(tuple(v & (1 << b) - 1 for v, b in zip(own, numbers.bits, strict=True)))  # type: ignore[arg-type]
        packet = _request(golden, n, endpoint, rng)
        answer = golden.execute(packet, endpoint)
        if answer is not None:
            bench.expected[n] = (0, endpoint ^ 1, answer)
            COVERAGE.when(golden.number is not None, "a request that is answered")
        COVERAGE.when(golden.number is None, "a request for who has no number")
        bench.requests_in.send(0, packet, endpoint=endpoint)
        await bench.quiet()
        bench.same()
        assert (int(dut.refused.value), int(dut.foreign.value)) == (len(golden.refused), golden.foreign)
        await bench.host.restart()
    COVERAGE.require_all()
