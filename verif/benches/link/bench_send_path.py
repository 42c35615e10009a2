"""SendPath: every flit is the golden one, whatever comes, whoever holds back."""

import cocotb
from cocotb.triggers import RisingEdge

from rtl.contract.link import PacketOpcode
from rtl.contract.link_config import LinkConfig
from verif.agents.bench import manifest
from verif.bench import Run, noticed_by
from verif.benches.link.packets import OPCODES, beats_of, make_packet, random_packet
from verif.benches.link.send_path_driver import COVER, SendBench
from verif.golden.framing import flits_of, grouped, header_of

_SMALL = LinkConfig(classes=2, shared_flits=8, weights=(3, 1, 1, 1, 1, 1, 1, 1))
_WIDE = LinkConfig(lanes=16, classes=2, shared_flits=8, send_beats=48, weights=(3, 1, 1, 1, 1, 1, 1, 1))

_PLANTED = (
    "packets of different endpoints share a unit",
    "the offset of a second packet in a flit replaces the first",
    "bytes behind the end of a packet are kept",
    "takes a packet without room",
    "words behind the end of the unit are sent",
    "the last flit of a unit is no tail",
    "no END where there is room for it",
    "the framer names the shared pool in a header and charges the dedicated one",
    "the framer sends the next beat over one that was not taken",
    "a unit gets more packets than a receiver gives out in its time",
    *noticed_by(
        "any_packets/source=bursty/sink=never/credits=mostly",
        "a unit starts with one credit",
    ),
    *noticed_by(
        "packs_as_much_as_fits",
        "a packet joins the unit that the line wants next",
    ),
    *noticed_by(
        "every_length",
        "a packet joins a unit that it does not fit into",
    ),
    *noticed_by(
        "refuses_what_is_no_packet",
        "a packet that ends too early is good",
    ),
    *noticed_by(
        "gives_up_a_unit",
        "a flit given up is not released",
    ),
    *noticed_by(
        "a_source_that_stops_in_a_packet",
        "a unit can be taken while a packet is being appended to it",
    ),
)

RUNS = (Run("send_path", config=_SMALL, faults=_PLANTED), Run("send_path", config=_WIDE, regress=True))


@cocotb.test(timeout_time=60, timeout_unit="us")
@cocotb.parametrize(
    (
        ("source", "sink", "credits"),
        [
            ("never", "never", "never"),
            ("rarely", "half", "mostly"),
            ("half", "bursty", "rarely"),
            ("never", "mostly", "half"),
            ("bursty", "never", "mostly"),
        ],
    )
)
async def any_packets(dut, source: str, sink: str, credits: str) -> None:
    bench = SendBench(dut, source, sink, credits)
    await bench.start()
    cocotb.start_soon(bench.watch())
    rng = bench.rng
    bench.send([random_packet(rng, bench.link.classes) for _ in range(150)])
    one = int(rng.integers(bench.link.classes))  # then many to one queue, so that units fill
    bench.send([make_packet(rng, 0, int(rng.integers(70)), False, one, 1 + (n > 60)) for n in range(90)])
    bench.send([make_packet(rng, 0, 448, False, one, 1) for _ in range(8)])
    for opcode in (PacketOpcode.WRITE, PacketOpcode.READ_RESPONSE):  # long units behind short ones in every queue
        for class_ in range(bench.link.classes):
            sizes = rng.choice([0, 448], 40)
            bench.send([make_packet(rng, opcode, int(size), False, class_, 1 + n % 2) for n, size in enumerate(sizes)])
    await bench.all_out()
    assert bench.bad == 0, "a good packet was counted as bad"


@cocotb.test(timeout_time=60, timeout_unit="us")
async def every_length(dut) -> None:
    """Payloads of 0 to 512 bytes, with a signal and without."""
    bench = SendBench(dut)
    await bench.start()
    cocotb.start_soon(bench.watch())
    for length in range(513):
        for signal in (False, True):
            bench.send([make_packet(bench.rng, OPCODES[length % 4], length, signal, length % bench.link.classes)])
    await bench.all_out()


@cocotb.test(timeout_time=100, timeout_unit="us")
async def packs_as_much_as_fits(dut) -> None:
    """Packets that all wait before the first unit may start make the units of the golden model."""
    bench = SendBench(dut)
    await bench.start()
    cocotb.start_soon(bench.watch())
    for sizes in (
        [20, 40, 0, 500, 16, 64, 64],
        [448, 448, 448, 448],
        [448, 448, 448, 444, 1],
        [216] * 7,
        [212, 208, 212, 208, 212, 1],
        [512, 512, 0, 0],
        [8] * 16,
        [64] * 8,
    ):
        dut.pause.value = 1
        bench.units.clear()
        packets = [make_packet(bench.rng, PacketOpcode.WRITE, size, False, 0, 3) for size in sizes]
        bench.send(packets)
        await bench.source.drained()
        await bench.cycles(4)
        dut.pause.value = 0
        await bench.all_out()
        expected = [flits_of(unit) for unit in grouped(packets, bench.link)]
        assert [len(u) for u in bench.units] == [len(u) for u in expected], f"{sizes}: units of other sizes"
        assert bench.units == expected, f"{sizes}: units differ"


@cocotb.test(timeout_time=60, timeout_unit="us")
async def a_source_that_stops_in_a_packet(dut) -> None:
    """The unit to which the packet is appended stays until it is whole, though the line has nothing else."""
    bench = SendBench(dut)
    await bench.start()
    cocotb.start_soon(bench.watch())
    for _ in range(10):
        dut.pause.value = 1
        bench.units.clear()
        packets = [make_packet(bench.rng, PacketOpcode.WRITE, size, False, 0, 1) for size in (64, 64, 64, 180)]
        bench.send(packets[:3])
        bench.waiting[0].append(packets[3])
        parts = beats_of(packets[3], bench.link, bench.rng)
        bench.source.send(parts[:1])
        await bench.source.drained()
        dut.pause.value = 0
        await bench.cycles(60)
        assert len(bench.units) == 2, f"{len(bench.units)} units left, two were whole"
        bench.source.send(parts[1:])
        await bench.all_out()
        assert bench.units == [flits_of(unit) for unit in grouped(packets, bench.link)]


@cocotb.test(timeout_time=60, timeout_unit="us")
async def refuses_what_is_no_packet(dut) -> None:
    """A packet that is wrong is counted and leaves no trace; those around it go."""
    bench = SendBench(dut, "rarely")
    await bench.start()
    cocotb.start_soon(bench.watch())
    rng = bench.rng
    wrong = 0
    for round_ in range(8):
        for fault in ("opcode", "END", "flags", "length", "class", "early", "late", "first"):
            bench.send([random_packet(rng, 2)])
            beats = beats_of(make_packet(rng, 0, int(rng.integers(240, 400)), False, round_ % 2, 1), bench.link)
            at = 17  # of data in a beat
            if fault == "opcode":
                beats[0] |= int(rng.integers(7, 15)) << at
            elif fault == "END":
                beats[0] |= 15 << at
            elif fault == "flags":
                beats[0] |= (8 | int(rng.integers(8))) << (at + 4)
            elif fault == "length":
                beats[0] = beats[0] & ~(0x3FF << (at + 8)) | int(rng.integers(513, 1024)) << (at + 8)
            elif fault == "class":
                if bench.link.classes == 8:
                    continue
                beats = [b & ~(7 << 2) | bench.link.classes << 2 for b in beats]
            elif fault == "early":
                beats = beats[:-1]
                beats[-1] |= 2
            elif fault == "late":
                beats = [b & ~2 for b in beats] + [beats[-1]]
            elif fault == "first":
                beats[1] |= 1
            wrong += 1
            bench.source.send(beats)
    bench.send([random_packet(rng, 2) for _ in range(5)])
    await bench.all_out()
    assert bench.bad == wrong, f"{bench.bad} bad packets were counted, {wrong} were sent"
    COVER.hit("bad packet")


@cocotb.test(timeout_time=60, timeout_unit="us")
async def gives_up_a_unit(dut) -> None:
    """A new session in the middle of anything: what was cut is told, and the next unit is right."""
    bench = SendBench(dut)
    await bench.start()
    cocotb.start_soon(bench.watch())
    rng = bench.rng
    for _ in range(40):
        packets = [make_packet(rng, 0, int(rng.integers(300, 513)), False, 0, n) for n in range(5)]
        bench.send(packets)
        await bench.cycles(int(rng.integers(5, 40)))
        seen = bench.flits
        dut.pause.value = 1
        dut.clear.value = 1
        await bench.cycles(1)
        dut.clear.value = 0
        cut = int(dut.cut.value)
        await bench.cycles(1)  # the sink's last beat has come
        whole = len(flits_of([bench.waiting[0][0]])) if bench.waiting[0] else 0
        if cut:
            # the unit under way: its first flits left, `cut` did not
            left = len(bench.unit)
            assert whole == left + cut, f"{left} flits left, {cut} were cut, the unit has {whole}"
            bench.waiting[0].popleft()
            COVER.hit("given up in the middle")
        else:
            assert not bench.unit, f"a unit is open after {seen} flits and nothing was cut"
        bench.unit.clear()
        bench.part = b""
        bench.spent.clear()
        await bench.cycles(8)
        dut.pause.value = 0
        await bench.all_out()


@cocotb.test(timeout_time=100, timeout_unit="us")
@cocotb.parametrize(size=[0, 448, 512])
async def a_flit_in_each_flit_time(dut, size: int) -> None:
    """Units of 1, 2 to 4 and 3 flits that wait leave without a pause."""
    bench = SendBench(dut)
    await bench.start()
    cocotb.start_soon(bench.watch())
    dut.pause.value = 1
    for n in range(4):
        for class_ in range(min(4, bench.link.classes)):
            bench.send([make_packet(bench.rng, PacketOpcode.WRITE, size, False, class_, n)])
    await bench.source.drained()
    await bench.cycles(4)
    dut.pause.value = 0
    await bench.all_out()
    beats = bench.link.beats
    gaps = [b - a for a, b in zip(bench.times, bench.times[1:])]
    assert set(gaps) == {beats}, f"flits came {sorted(set(gaps))} cycles apart, {beats} is a flit time"


@cocotb.test(timeout_time=100, timeout_unit="us")
@cocotb.parametrize(size=[8, 64, 200, 325, 448, 512])
async def a_stream_keeps_the_line_busy(dut, size: int) -> None:
    """Packets of one size to one queue, without gaps: packing them costs the line nothing."""
    bench = SendBench(dut)
    await bench.start()
    cocotb.start_soon(bench.watch())
    bench.send([make_packet(bench.rng, PacketOpcode.WRITE, size, False, 0, 1) for _ in range(150)])
    await bench.source.drained()
    gaps = [b - a for a, b in zip(bench.times, bench.times[1:])][16:]
    beats = bench.link.beats
    assert set(gaps) == {beats}, f"{size} bytes: flits came {sorted(set(gaps))} cycles apart, {beats} is a flit time"
    await bench.all_out()


@cocotb.test(timeout_time=400, timeout_unit="us")
async def classes_share_the_line(dut) -> None:
    """Two classes that always have units waiting: 2,000 flits in the proportion of the weights, within 2 %."""
    # at x16 packets come as fast as flits could leave: the line is held back, so that they wait
    bench = SendBench(dut, sink="never" if manifest().config.beats == 4 else "half")
    await bench.start()
    cocotb.start_soon(bench.watch())
    rng = bench.rng
    count = 0
    while len(bench.units) < 2_000:
        room = int(dut.room.value)
        open_to = [c for c in (0, 1) if room >> (2 * c) & 1 and len(bench.waiting[2 * c]) < 8]
        if not bench.source.queue and open_to:
            class_ = min(open_to, key=lambda c: len(bench.waiting[2 * c]))
            bench.send([make_packet(rng, PacketOpcode.WRITE, 0, False, class_, count)])
            count = (count + 1) % 4096  # another endpoint: a unit of its own
        await RisingEdge(bench.clk)
    served = [sum(header_of(u[0])["class_"] == c for u in bench.units) for c in (0, 1)]
    weights = bench.link.weights
    share = served[0] / sum(served) * (weights[0] + weights[1]) / weights[0]
    assert abs(share - 1) <= 0.02, f"flits of the classes: {served}, weights {weights[:2]}"


@cocotb.test()
async def covered(dut) -> None:
    COVER.require_all()
