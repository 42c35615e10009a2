"""A whole switch with a partner at every port: what goes in comes out where it belongs, or is counted."""

from collections import defaultdict
from typing import Any

import cocotb

from rtl.contract.link import FLIT_HEADER, FLIT_HEADER_BYTES, LinkCause, LinkState, PacketOpcode
from rtl.contract.link import PACKET_HEADER as HEADER
from rtl.contract.switch_registers import (
    ResponderRegister,
    SwitchCause,
    SwitchRegister,
    SwitchSpace,
    port_address,
    route_address,
)
from verif.agents.bench import Bench
from verif.agents.switch_ports import SwitchPorts
from verif.checks.coverage import Coverage
from verif.golden.framing import Packet, Units, flits_of, grouped, header_of, unpack

_FLITS = ["1 flit", "2 flits", "3 flits", "4 flits"]
_EVENTS = ["to itself", "response", "refused flit", "hole", "partition", "dead output", "read answered"]
_MORE = ["restart", "parity", "taken out", "put back", "idle", "cut by a restart", "parity of a refused read"]
COVER = Coverage("switch", _FLITS + _EVENTS + _MORE)
LATENCY_P50, LATENCY_MAX = 13, 17  # link cycles at x8


def unit(
    rng: Any, source: int, to: int, number: int, *, classes: int, opcode: int | None = None, short: bool = False
) -> list[bytes]:
    """Flits of a unit with one or more packets; `opcode`: of its first one; `short`: one flit."""
    class_ = int(rng.integers(classes))
    response = opcode is None and rng.random() < 0.25
    first = PacketOpcode.READ_RESPONSE if response else PacketOpcode.WRITE if opcode is None else opcode
    packets = []
    for k in range(1 if short else int(rng.integers(1, 4))):
        code = first if k == 0 or response else PacketOpcode.WRITE
        length = (int(rng.choice([8, 40, 200] if short else [8, 40, 200, 250, 400, 500]))) if k == 0 else 200
        head = HEADER.pack(opcode=int(code), length_bytes=length, tag=number % 1024, source=source, address=number)
        carries = code != PacketOpcode.READ
        data = head.to_bytes(16, "little") + (rng.bytes(length) if carries else b"")
        packets.append(Packet(class_, to, data))
    return flits_of(grouped(packets)[0])


def bare(flit: bytes) -> bytes:
    """A flit without what changes on a hop."""
    header = FLIT_HEADER.unpack(int.from_bytes(flit[:FLIT_HEADER_BYTES], "little"))
    header["dedicated"] = header["vc"] = 0
    return FLIT_HEADER.pack(header).to_bytes(FLIT_HEADER_BYTES, "little") + flit[FLIT_HEADER_BYTES:]


Key = tuple[int, int, int]  # source, class * 2 + kind, destination


class Traffic:
    """What was sent and what came, as units, by (source, queue, destination)."""

    def __init__(self, bench: Bench, ports: SwitchPorts):
        self.bench = bench
        self.ports = ports
        count = ports.cfg.ports
        self.sent: dict[Key, list[list[bytes]]] = defaultdict(list)
        self.got: dict[Key, list[list[bytes]]] = defaultdict(list)
        self.units = [Units() for _ in range(count)]
        self.number = 0

    def send(
        self, source: int, to: int, *, opcode: int | None = None, at: int | None = None, short: bool = False
    ) -> list[bytes]:
        """A unit from port `source` to endpoint `to`, which is expected to come out there. Returns its flits."""
        ports, rng = self.ports, self.bench.rng
        self.number += 1
        flits = unit(rng, source, to, self.number, classes=ports.cfg.link.classes, opcode=opcode, short=short)
        for flit in flits:
            ports.partners[source].send(flit)
        header = header_of(flits[0])
        COVER.hit(_FLITS[len(flits) - 1])
        COVER.when(source == to, "to itself")
        COVER.when(bool(header["kind"]), "response")
        if at is None:
            self.sent[source, 2 * header["class_"] + header["kind"], to].append([bare(f) for f in flits])
        return flits

    def collect(self) -> None:
        """What the partners have received since."""
        for p, partner in enumerate(self.ports.partners):
            for flit in partner.received:
                done = self.units[p].arrive(flit)
                if not done:
                    continue
                packets, bad = unpack(done)
                assert not bad, f"port {p}: a unit that cannot be read"
                if not packets:
                    continue  # the rest of one that was dropped
                header = header_of(done[0])
                source = packets[0].header["source"]
                self.got[source, 2 * header["class_"] + header["kind"], p].append([bare(f) for f in done])
            partner.received.clear()

    async def drain(self, flit_times: int = 4000) -> None:
        """Until everything sent has come; AssertionError if it does not."""
        for _ in range(flit_times // 20):
            await self.ports.run(20 * self.ports.cfg.slot_cycles)
            self.collect()
            if {k: v for k, v in self.got.items() if v} == {k: v for k, v in self.sent.items() if v}:
                return
        for key in self.sent.keys() | self.got.keys():
            source, queue, to = key
            mine, theirs = self.sent[key], self.got[key]
            assert mine == theirs, f"{source} to {to}, queue {queue}: {len(mine)} units sent, {len(theirs)} came"


async def _begin(dut: Any, damage: float = 0.0) -> tuple[Bench, SwitchPorts, Traffic]:
    bench = Bench(dut)
    ports = SwitchPorts(bench, dut, bench.cfg)
    await bench.start()
    await ports.up()
    ports.damage = damage
    return bench, ports, Traffic(bench, ports)


@cocotb.test(timeout_time=4000, timeout_unit="us")
async def delivers_everything_in_order(dut: Any) -> None:
    bench, ports, traffic = await _begin(dut, damage=0.03)
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
    for p in range(count):
        for cause in SwitchCause:
            value = await ports.read(port_address(p, SwitchRegister.CAUSE) + 8 * cause)
            assert value == 0, f"port {p} counts {value} {cause.name}"


@cocotb.test(timeout_time=2000, timeout_unit="us")
async def idle_latency(dut: Any) -> None:
    bench, ports, traffic = await _begin(dut)
    waits = []
    for _ in range(60):
        await ports.run(int(bench.rng.integers(30, 60)))
        ports.late = {p for p in range(ports.cfg.ports) if bench.rng.random() < 0.5}
        source, to = (int(x) for x in bench.rng.integers(ports.cfg.ports, size=2))
        before = {p: len(ports.ended[p]) for p in (source, to)}
        began = len(ports.began[source])
        flits = traffic.send(source, to, short=True)
        await ports.run(20 * ports.cfg.slot_cycles)

        def first(log: list[tuple[int, bytes]], after: int, flits: list[bytes] = flits) -> int:
            return next(c for c, f in log[after:] if bare(f[: len(flits[0])]) == bare(flits[0]))

        waits.append(first(ports.ended[to], before[to]) - first(ports.began[source], began))
    await traffic.drain()
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
    bench, ports, traffic = await _begin(dut)
    count = ports.cfg.ports
    for endpoint, port in ((0, 0), (count - 1, count - 1), (900, None)):
        told, route = await ports.read(route_address(endpoint)), 0 if port is None else 1 << 15 | port
        assert told == route, f"the route of endpoint {endpoint} reads as {told:#x}, not {route:#x}"
    foreign = 1  # port of another partition
    await ports.write(port_address(foreign, SwitchRegister.PARTITION), 5)
    refused: dict[int, int] = defaultdict(int)
    reads: list[tuple[int, int, dict[str, int]]] = []
    for n in range(60):
        source = int(bench.rng.choice([p for p in range(count) if p != foreign]))
        kind = n % 3
        if kind == 0:
            traffic.send(source, int(bench.rng.choice([p for p in range(count) if p != foreign])))
            continue
        to = foreign if kind == 1 else 900
        COVER.hit("partition" if kind == 1 else "hole")
        asks = bool(bench.rng.random() < 0.5)
        flits = traffic.send(source, to, opcode=PacketOpcode.READ if asks else PacketOpcode.WRITE, at=to)
        packets, _ = unpack(flits)
        refused[source] += 1
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
    told = await ports.read(SwitchSpace.RESPONDER + ResponderRegister.ANSWERED)
    assert told == len(reads), f"the responder counts {told} reads, not {len(reads)}"
    for p in range(count):
        told = 0
        for cause in (SwitchCause.HOLE, SwitchCause.PARTITION):
            told += await ports.read(port_address(p, SwitchRegister.CAUSE) + 8 * cause)
        assert told == refused[p], f"port {p} counts {told} refused units, not {refused[p]}"


def _is_answer(flits: list[bytes]) -> bool:
    packets, _ = unpack(flits)
    return bool(packets) and packets[0].header["opcode"] == PacketOpcode.ERROR_RESPONSE


@cocotb.test(timeout_time=4000, timeout_unit="us")
async def a_port_is_taken_out_and_put_back(dut: Any) -> None:
    """Units for it are dropped and counted, everything else arrives; afterwards so do units for it."""
    bench, ports, traffic = await _begin(dut)
    count = ports.cfg.ports
    gone = count - 1
    others = range(gone)
    await ports.write(port_address(gone, SwitchRegister.CONTROL), 1)
    await ports.run(10 * ports.cfg.slot_cycles)
    COVER.hit("taken out")
    sent_to_it = 0
    for n in range(60):
        source = int(bench.rng.integers(gone))
        if n % 3 == 0:
            flits = traffic.send(source, gone, opcode=PacketOpcode.WRITE, at=gone)
            sent_to_it += len(flits)
            COVER.hit("dead output")
        else:
            traffic.send(source, int(bench.rng.integers(gone)))
        await ports.run(int(bench.rng.integers(0, 12)))
    await traffic.drain()
    dropped = 0
    for p in others:
        dropped += await ports.read(port_address(p, SwitchRegister.CAUSE) + 8 * SwitchCause.DROPPED)
    assert dropped == sent_to_it, f"{dropped} flits dropped, {sent_to_it} sent to the port that is out"
    await ports.write(port_address(gone, SwitchRegister.CONTROL), 0)
    await ports.up()
    COVER.hit("put back")
    for _ in range(30):
        traffic.send(int(bench.rng.integers(count)), gone)
        traffic.send(gone, int(bench.rng.integers(count)))
    await traffic.drain()


@cocotb.test(timeout_time=4000, timeout_unit="us")
async def a_partner_begins_again(dut: Any) -> None:
    """What was on its way to or from it may be lost and is reported; everybody else loses nothing."""
    bench, ports, traffic = await _begin(dut, damage=0.01)
    count = ports.cfg.ports
    for _ in range(3):
        again = int(bench.rng.integers(count))
        for _ in range(20):
            for p in range(count):
                traffic.send(p, int(bench.rng.integers(count)))
            await ports.run(int(bench.rng.integers(1, 10)) * ports.cfg.slot_cycles)
        partner = ports.partners[again]
        partner.waiting.clear()
        ports.restart.add(again)
        COVER.hit("restart")
        await ports.run(20 * ports.cfg.slot_cycles)
        await ports.up()
        for _ in range(60):
            await ports.run(20 * ports.cfg.slot_cycles)
            traffic.collect()
        for key in set(traffic.sent) | set(traffic.got):
            source, _, to = key
            mine, theirs = traffic.sent[key], traffic.got[key]
            if again in (source, to):
                rest = iter(mine)
                assert all(u in rest for u in theirs), f"{source} to {to}: out of order or twice"
            else:
                assert mine == theirs, f"{source} to {to}: {len(mine)} units sent, {len(theirs)} came"
        traffic.units[again].clear()
        traffic.sent.clear()
        traffic.got.clear()
    for _ in range(20):
        traffic.send(int(bench.rng.integers(count)), int(bench.rng.integers(count)))
    await traffic.drain()
    assert all(p.state == LinkState.UP for p in ports.partners)


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def a_unit_cut_by_a_restart_is_counted(dut: Any) -> None:
    """Each of its flits that had come, at the input they came to."""
    bench, ports, traffic = await _begin(dut)
    for source in range(ports.cfg.ports):
        flits: list[bytes] = []
        while len(flits) < 2:
            flits = unit(bench.rng, source, 0, source, classes=ports.cfg.link.classes, opcode=PacketOpcode.WRITE)
        partner = ports.partners[source]
        for flit in flits[:-1]:
            partner.send(flit)
        await ports.run(20 * ports.cfg.slot_cycles)
        ports.restart.add(source)
        COVER.hit("cut by a restart")
        await ports.run(20 * ports.cfg.slot_cycles)
        await ports.up()
        told = await ports.read(port_address(source, SwitchRegister.CAUSE) + 8 * SwitchCause.BAD_FLITS)
        assert told == len(flits) - 1, f"port {source} counts {told} flits cut off, not {len(flits) - 1}"
    traffic.send(0, 1)
    await traffic.drain()


@cocotb.test(timeout_time=4000, timeout_unit="us")
async def a_flipped_bit_is_never_delivered(dut: Any) -> None:
    """The unit is dropped and counted; all others arrive. A read in it is not answered."""
    bench, ports, traffic = await _begin(dut)
    count = ports.cfg.ports
    flipped = reads = 0
    for n in range(30):
        source, to = (int(x) for x in bench.rng.integers(count, size=2))
        hit = bool(bench.rng.random() < 0.5)
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
    told = 0
    for p in range(count):
        told += await ports.read(port_address(p, SwitchRegister.CAUSE) + 8 * SwitchCause.PARITY)
    assert told >= flipped, f"{told} flits with wrong parity, {flipped} units hit"
    told = await ports.read(SwitchSpace.RESPONDER + ResponderRegister.PARITY)
    assert told >= reads, f"{told} flits of reads with wrong parity, {reads} units hit"


@cocotb.test()
async def everything_was_seen(dut: Any) -> None:
    COVER.require_all()
