"""A whole switch with a partner at every port: what goes in comes out where it belongs, or is counted."""

from typing import Any

import cocotb

from rtl.contract.link import LinkCause, PacketOpcode
from rtl.contract.link_config import LinkConfig
from rtl.contract.switch_config import SwitchConfig
from rtl.contract.switch_registers import (
    ResponderRegister,
    SwitchCause,
    SwitchRegister,
    SwitchSpace,
    port_address,
    route_address,
)
from verif.bench import Run, noticed_by
from verif.benches.switch.switch_traffic import FLITS, bare, begin
from verif.checks.coverage import Coverage
from verif.golden.framing import unpack

_FOUR = SwitchConfig(name="four", ports=4, link=LinkConfig(classes=2, shared_flits=28))

_PLANTED = (
    "a unit that goes on in the next slot does not block the bypass",
    "an output swallows its units and tells nobody",
    *noticed_by(
        "a_flipped_bit_is_never_delivered",
        "parity of a retry buffer is ignored",
        "parity of what is answered is ignored",
    ),
    *noticed_by("holes_and_partitions", "a unit for another partition is not refused"),
)

RUNS = (Run("switch", config=_FOUR, faults=_PLANTED),)

_EVENTS = ["to itself", "response", "refused flit", "hole", "partition", "read answered"]
_MORE = ["parity", "idle", "parity of a refused read"]
COVER = Coverage("switch", FLITS + _EVENTS + _MORE)
LATENCY_P50, LATENCY_MAX = 13, 14  # link cycles at x8, by the bypass


@cocotb.test(timeout_time=4000, timeout_unit="us")
async def delivers_everything_in_order(dut: Any) -> None:
    bench, ports, traffic = await begin(dut, COVER, damage=0.03)
    count = ports.cfg.ports
    for round_ in range(40):
        for p in range(count):
            busy = round_ % 10 < 7
            for _ in range(int(bench.rng.integers(0, 4 if busy else 2))):
                hot = bench.rng.random() < 0.3
                traffic.send(p, 0 if hot else int(bench.rng.integers(count)))
        await ports.run(int(bench.rng.integers(1, 30)) * ports.cfg.slot_cycles)
        traffic.collect()
    await traffic.drain()
    COVER.when(any(p.counts[LinkCause.REFUSED] for p in ports.partners), "refused flit")
    traffic.need(20)
    for cause in SwitchCause:
        told = await traffic.told(cause)
        assert not any(told), f"the ports count {told} {cause.name}"


@cocotb.test(timeout_time=2000, timeout_unit="us")
async def idle_latency(dut: Any) -> None:
    bench, ports, traffic = await begin(dut, COVER, turned=0xFFFF)
    waits = []
    count = ports.cfg.ports
    for n in range(3 * count * count):
        await ports.run(int(bench.rng.integers(30, 60)))
        ports.late = {p for p in range(count) if bench.rng.random() < 0.5}
        source, to = n % count, n // count % count  # every pair, or one that has no bypass hides behind the others
        before = {p: len(ports.ended[p]) for p in (source, to)}
        began = len(ports.began[source])
        flits = traffic.send(source, to, short=True)
        await ports.run(20 * ports.cfg.slot_cycles)

        def first(log: list[tuple[int, bytes]], after: int, flits: list[bytes] = flits) -> int:
            return next(c for c, f in log[after:] if bare(f[: len(flits[0])]) == bare(flits[0]))

        waits.append(first(ports.ended[to], before[to]) - first(ports.began[source], began))
    await traffic.drain()
    assert sum(traffic.arrived) == len(waits), f"{sum(traffic.arrived)} units came out of the switch, not {len(waits)}"
    COVER.hit("idle")
    waits.sort()
    middle = waits[len(waits) // 2]
    dut._log.info(f"latency: least {waits[0]}, p50 {middle}, most {waits[-1]} link cycles: {sorted(waits)}")
    if ports.cfg.link.lanes == 8:
        assert middle <= LATENCY_P50, f"latency p50 is {middle} cycles, not {LATENCY_P50} at most"
        assert waits[-1] <= LATENCY_MAX, f"latency is {waits[-1]} cycles, not {LATENCY_MAX} at most"


@cocotb.test(timeout_time=2000, timeout_unit="us")
async def holes_and_partitions(dut: Any) -> None:
    """Writes that may not go are dropped and counted; reads are answered with an error."""
    bench, ports, traffic = await begin(dut, COVER, turned=0x5555)
    count = ports.cfg.ports
    for endpoint, port in ((0, 0), (count - 1, count - 1), (900, None)):
        told, route = await ports.read(route_address(endpoint)), 0 if port is None else 1 << 15 | port
        assert told == route, f"the route of endpoint {endpoint} reads as {told:#x}, not {route:#x}"
    foreign = 1  # port of another partition
    await ports.write(port_address(foreign, SwitchRegister.PARTITION), 5)
    refused = {cause: [0] * count for cause in (SwitchCause.HOLE, SwitchCause.PARTITION)}
    reads: list[tuple[int, int, dict[str, int]]] = []
    for n in range(72):
        source, kind = n % count, n // count % 3
        inside = [p for p in range(count) if (p == foreign) == (source == foreign)]
        outside = [p for p in range(count) if p not in inside]
        if kind == 0:
            traffic.send(source, int(bench.rng.choice(inside)))
            continue
        cause = SwitchCause.PARTITION if kind == 1 else SwitchCause.HOLE
        to = int(bench.rng.choice(outside)) if kind == 1 else 900
        COVER.hit("partition" if kind == 1 else "hole")
        asks = bool(bench.rng.random() < 0.5)
        flits = traffic.send(source, to, opcode=PacketOpcode.READ if asks else PacketOpcode.WRITE, at=to)
        packets, _ = unpack(flits)
        refused[cause][source] += 1
        reads += [(source, to, p.header) for p in packets if p.header["opcode"] == PacketOpcode.READ]
    answers = []
    for _ in range(100):
        await ports.run(20 * ports.cfg.slot_cycles)
        traffic.collect()
        answers = [(k, flits) for k, units in traffic.got.items() for flits in units if _is_answer(flits)]
        if len(answers) >= len(reads):
            break
    found = sorted((to, p.header["tag"], p.header["source"], p.header["opcode"])
                   for (_, _, to), flits in answers for p in unpack(flits)[0])  # fmt: skip
    expected = sorted((source, h["tag"], to, int(PacketOpcode.ERROR_RESPONSE)) for source, to, h in reads)
    assert found == expected, f"{len(expected)} reads refused, answers {found[:3]}... not {expected[:3]}..."
    COVER.when(bool(expected), "read answered")
    for key in list(traffic.got):
        traffic.got[key] = [flits for flits in traffic.got[key] if not _is_answer(flits)]
    await traffic.drain()
    traffic.need(3)
    told = await ports.read(SwitchSpace.RESPONDER + ResponderRegister.ANSWERED)
    assert told == len(reads), f"the responder counts {told} reads, not {len(reads)}"
    for cause, units in refused.items():
        counts = await traffic.told(cause)
        assert counts == units, f"the ports count {counts} units refused for {cause.name}, not {units}"


def _is_answer(flits: list[bytes]) -> bool:
    packets, _ = unpack(flits)
    return bool(packets) and packets[0].header["opcode"] == PacketOpcode.ERROR_RESPONSE


@cocotb.test(timeout_time=4000, timeout_unit="us")
async def a_flipped_bit_is_never_delivered(dut: Any) -> None:
    """The unit is dropped and counted; all others arrive. A read in it is not answered."""
    bench, ports, traffic = await begin(dut, COVER, turned=0x3333)
    count = ports.cfg.ports
    flipped = reads = 0
    for n in range(12 * count):
        source, to = int(bench.rng.integers(count)), n % count
        hit = bool(bench.rng.random() < 0.7)
        dut.flip.value = 1 << source if hit else 0
        asks = hit and n % 3 == 0
        to = 900 if asks else to  # there is no route
        flits = traffic.send(source, to, at=to if hit else None, opcode=PacketOpcode.READ if asks else None)
        COVER.when(asks, "parity of a refused read")
        reads += asks
        await ports.run((len(flits) + 24) * ports.cfg.slot_cycles)
        dut.flip.value = 0
        flipped += hit and not asks
        COVER.when(hit, "parity")
        await ports.run(4)
    await traffic.drain()
    sound = sum(len(units) for units in traffic.sent.values())
    assert sum(traffic.arrived) == sound >= 5, f"{traffic.arrived} units came out of the ports, {sound} were sent"
    told = sum(await traffic.told(SwitchCause.PARITY))
    assert told >= flipped, f"{told} flits with wrong parity, {flipped} units hit"
    assert min(ports.spoiled) >= 3, f"flits that left with wrong codes, by port: {ports.spoiled}"
    told = await ports.read(SwitchSpace.RESPONDER + ResponderRegister.PARITY)
    assert told >= reads, f"{told} flits of reads with wrong parity, {reads} units hit"


@cocotb.test()
async def everything_was_seen(dut: Any) -> None:
    COVER.require_all()
