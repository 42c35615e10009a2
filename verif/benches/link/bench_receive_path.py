"""ReceivePath: packets of golden flits come out as they were; what is malformed is counted and harms nothing else."""

from collections import deque

import cocotb
from cocotb.triggers import RisingEdge

from rtl.contract.link import FLIT_HEADER, FLIT_HEADER_BYTES, NO_HEADER, PacketOpcode
from rtl.contract.link_config import LinkConfig
from verif.agents.stall import styled
from verif.bench import Fault, Run, noticed_by
from verif.benches.link.packets import make_packet, random_packet
from verif.benches.link.receive_path_driver import COVER, PACKET_CHANGES, UNIT_CHANGES, ReceiveBench
from verif.golden.framing import FLIT_WORDS, flits_of, grouped, header_of

_SMALL = LinkConfig(classes=2, shared_flits=8, weights=(3, 1, 1, 1, 1, 1, 1, 1))
_WIDE = LinkConfig(lanes=16, classes=2, shared_flits=8, send_beats=48, weights=(3, 1, 1, 1, 1, 1, 1, 1))
_STUCK = (
    "a fifth flit is taken into the unit at a link's end",
    "a freed place of the receive pool is not used again",
    "the flits of a bad unit are not freed",
)
"""They keep places of the pool: packets stay away, and nothing else shows it."""

_PLANTED = (
    "the list of a queue loses its second unit",
    "the receive pool frees every flit to the shared account",
    "the next unit begins in the middle of the one dropped",
    "the gap between two flits is a lane too short",
    *noticed_by(
        "malformed/spacing=never/sinks=never",
        "a head in an open unit continues it at a link's end",
        "an endpoint that changes in a unit is not noticed at a link's end",
        "an offset that is wrong is not noticed",
        "a length beyond the unit is not noticed",
        "an unknown opcode is a write",
        "a unit of the other kind is taken",
        "a zero header is a packet",
    ),
    *noticed_by(
        "clear_drops_what_is_open",
        "a clear of a link's end keeps units that are not complete",
    ),
)

RUNS = (
    Run("receive_path", config=_SMALL, faults=(*(Fault(sentence, hangs=True) for sentence in _STUCK), *_PLANTED)),
    Run("receive_path", config=_WIDE, regress=True),
)


@cocotb.test(timeout_time=60, timeout_unit="us")
@cocotb.parametrize(
    (
        ("spacing", "sinks"),
        [("never", "never"), ("rarely", "half"), ("half", "mostly"), ("never", "bursty"), ("bursty", "never")],
    )
)
async def packets_as_they_were(dut, spacing: str, sinks: str) -> None:
    bench = ReceiveBench(dut, spacing, sinks)
    await bench.start()
    cocotb.start_soon(bench.drive())
    for unit in bench.some_units(80, bench.cfg.classes):
        bench.send(unit)
    await bench.all_out()
    assert bench.bad == [0, 0, 0], "sound units were counted as bad"


@cocotb.test(timeout_time=60, timeout_unit="us")
async def every_length(dut) -> None:
    """Payloads of 0 to 512 bytes, with a signal and without, several in a unit."""
    bench = ReceiveBench(dut)
    await bench.start()
    cocotb.start_soon(bench.drive())
    rng = bench.rng
    for opcode in (PacketOpcode.WRITE, PacketOpcode.READ_RESPONSE):
        packets = [make_packet(rng, opcode, n, signal, 1) for n in rng.permutation(513) for signal in (False, True)]
        for unit in grouped(packets):
            bench.send(flits_of(unit, bench.dedicated(unit)))
    await bench.all_out()


@cocotb.test(timeout_time=60, timeout_unit="us")
async def units_of_queues_interleave(dut) -> None:
    """Units of different queues flit by flit among each other."""
    bench = ReceiveBench(dut, "rarely", "rarely")
    await bench.start()
    cocotb.start_soon(bench.drive())
    for _ in range(30):
        queues: dict[int, deque[bytes]] = {}
        for unit in bench.some_units(4, bench.cfg.classes):
            header = header_of(unit[0])
            queues.setdefault(2 * header["class_"] + header["kind"], deque()).extend(unit)
        while queues:
            queue = int(bench.rng.choice(list(queues)))
            bench.send([queues[queue].popleft()])
            if not queues[queue]:
                del queues[queue]
        COVER.hit("units interleave")
    await bench.all_out()


@cocotb.test(timeout_time=60, timeout_unit="us")
@cocotb.parametrize((("spacing", "sinks"), [("never", "never"), ("rarely", "half")]))
async def malformed(dut, spacing: str, sinks: str) -> None:
    """Each kind of malformed unit between sound ones of the same queue."""
    bench = ReceiveBench(dut, spacing, sinks)
    await bench.start()
    cocotb.start_soon(bench.drive())
    for _ in range(6):
        for name, change in (PACKET_CHANGES | UNIT_CHANGES).items():
            sound, victim, after = bench.some_units(3, 1)
            if name == "length beyond the unit":
                # an opcode that carries a payload, in a unit of one flit
                victim = flits_of([make_packet(bench.rng, PacketOpcode.WRITE, int(bench.rng.integers(200)))])
            bench.send([*sound, *change(victim, bench.rng), *after])
            COVER.hit(name)
            if bench.rng.integers(3) == 0:
                for unit in bench.some_units(2, bench.cfg.classes):
                    bench.send(unit)
    await bench.all_out()
    assert bench.bad_packets >= 18 and bench.units.bad >= 18, "hardly anything was malformed"


@cocotb.test(timeout_time=60, timeout_unit="us")
async def random_bits(dut) -> None:
    """Flits with random headers and contents: all that can be said is what the golden model says."""
    bench = ReceiveBench(dut, "never", "rarely")
    await bench.start()
    cocotb.start_soon(bench.drive())
    rng = bench.rng
    for _ in range(400):
        fields = {
            "endpoint": int(rng.integers(2)),
            "class_": int(rng.integers(bench.cfg.classes)),
            "kind": int(rng.integers(2)),
            "dedicated": int(rng.integers(2)),
            "head": int(rng.integers(3) < 2),
            "tail": int(rng.integers(2)),
            "offset": int(rng.choice([0, 0, 0, NO_HEADER, rng.integers(64)])),
        }
        body = bytearray(rng.bytes(4 * FLIT_WORDS))
        if rng.integers(2):
            packet = random_packet(rng, 1, kind=fields["kind"]).data[: len(body)]
            body[: len(packet)] = packet
        bench.send([FLIT_HEADER.pack(fields).to_bytes(FLIT_HEADER_BYTES, "little") + bytes(body)])
    await bench.all_out()


@cocotb.test(timeout_time=60, timeout_unit="us")
async def clear_drops_what_is_open(dut) -> None:
    """A new session: complete units are delivered, the others freed, at any time."""
    bench = ReceiveBench(dut, "never", "half")
    await bench.start()
    cocotb.start_soon(bench.drive())
    for _ in range(25):
        for unit in bench.some_units(int(bench.rng.integers(4)), bench.cfg.classes):
            bench.send(unit)
        for unit in bench.some_units(2, bench.cfg.classes):
            bench.send(unit[: int(bench.rng.integers(len(unit) + 1))])
        while bench.flits:
            await RisingEdge(bench.clk)
        await bench.cycles(int(bench.rng.integers(6, 10)))
        COVER.when(bench.units._open, "clear drops")
        COVER.when(any(bench.expected), "clear keeps")
        dut.clear.value = 1
        await bench.cycles(1)
        dut.clear.value = 0
        bench.units.clear()
        await bench.cycles(2 * bench.cfg.queues)
    await bench.all_out()


@cocotb.test(timeout_time=60, timeout_unit="us")
async def overrun_loses_only_itself(dut) -> None:
    """More flits than places: each flit too many is told, what was complete comes out, and the pool works on."""
    bench = ReceiveBench(dut)
    await bench.start()
    for sink in bench.sinks:
        sink.stall = iter(lambda: True, False)
    cocotb.start_soon(bench.drive())
    bench.obeys = False
    link = bench.cfg
    flits = [f for n in range(link.pool_flits + 12) for f in flits_of([make_packet(bench.rng, 0, 100, False, 0, n)])]
    bench.send(flits)
    while bench.flits:
        await RisingEdge(bench.clk)
    await bench.cycles(3 * link.beats + 8)
    lost = bench.overruns
    assert 0 < lost <= 12, f"{lost} flits were told lost of {len(flits)} for {link.pool_flits} places"
    assert bench.bad[0] == lost, "a unit that lost its flit was not counted"
    bench.held[link.queues] -= lost
    for _ in range(lost):
        bench.expected[0].pop()
    bench.units.bad = lost
    bench.obeys = True
    for sink in bench.sinks:
        sink.stall = styled("never", bench.rng)
    while bench.held.sum():  # the flood took the places of every account
        await RisingEdge(bench.clk)
    for unit in bench.some_units(20, link.classes):
        bench.send(unit)
    await bench.all_out()
    COVER.hit("overrun")


@cocotb.test(timeout_time=60, timeout_unit="us")
@cocotb.parametrize(size=[0, 64, 213, 325, 512], packed=[False, True])
async def keeps_up_with_the_line(dut, size: int, packed: bool) -> None:
    """Flits without a pause, units of a packet each or as a sender packs them: the pool must not fill."""
    bench = ReceiveBench(dut)
    await bench.start()
    cocotb.start_soon(bench.drive())
    packets = [make_packet(bench.rng, 0, size, False, 0, 0 if packed else n) for n in range(100)]
    flits = [f for u in grouped(packets, bench.cfg) for f in flits_of(u)]
    await bench.cycles(3)
    begun = bench.cycle
    bench.send(flits)
    while bench.got < len(packets):
        await RisingEdge(bench.clk)
    beats = bench.cfg.beats
    took = bench.last_packet - begun
    least = len(flits) * beats
    assert took <= least + 24, f"{len(flits)} flits took {took} cycles, {least} would do"
    await bench.all_out()


@cocotb.test()
async def covered(dut) -> None:
    COVER.require_all()
