"""Ingress: lists, lengths, choices, beats and what is dropped, as the golden buffer says, in every cycle."""

import cocotb

from rtl.contract.link import PacketOpcode
from rtl.contract.link_config import LINKS, LinkConfig
from rtl.contract.switch_config import SwitchConfig
from verif.agents.bench import manifest
from verif.bench import Run
from verif.benches.link.packets import make_packet
from verif.benches.switch.ingress_bench import COVER, IngressBench, Pace
from verif.benches.switch.units import FILLS, MALFORMED, malformed, random_unit, unit_of
from verif.golden.switch_buffer import Choice


def _small(lanes: int) -> SwitchConfig:
    """Few queues and places, so that all of them fill."""
    link = LinkConfig(lanes=lanes, classes=2, shared_flits=8)
    return SwitchConfig(name=f"small_x{lanes}", ports=4, link=link, length_cap_flits=7)


_PLANTED = (
    "the tail of a list is not updated",
    "a list that became empty still shows a unit",
    "a unit that comes while the last of its list goes is linked behind that",
    "lengths of the lists keep what left",
    "a head in an open unit continues it at a switch's input",
    "a fifth flit is taken into the unit at a switch's input",
    "an endpoint that changes in a unit is not noticed at a switch's input",
    "a clear of a switch's input keeps units that are not complete",
    "the tail's route decides, not the head's",
    "a refused unit is delivered",
    "a refused unit with a read is dropped",
    "a slot that was sent is not used again",
    "a slot that was sent is freed twice",
    "the first flit of what is dropped is not freed",
    "an input of a switch frees every flit to the shared account",
    "more is told of a unit only when its second flit has begun",
    "flits of a unit that was begun at once wait for a slot",
    "the second flit of a unit is sent in the place of the third",
    "a header in another than the first flit of its unit is not seen",
    "a FETCH_ADD is not counted as a read",
    "a signal behind a payload is not skipped",
    "the lanes between two flits are words",
    "zeros do not end a unit",
    "a read cut short by the end of its unit counts",
    "parity of a flit is not stored",
    "lone is told between two flits of a unit under way",
    "flits of a unit that was begun at once are told to wait for slots",
    "flits of a unit cut short by a head are forgotten",
)

RUNS = (
    Run("switch_ingress", config=_small(8), faults=_PLANTED),
    Run("switch_ingress", config=_small(4), regress=True),
    Run("switch_ingress", config=_small(16), regress=True),
    Run("switch_ingress", config=SwitchConfig(), regress=True),
    Run("switch_ingress", config=SwitchConfig(name="x4", link=LINKS["x4"]), regress=True),
)

_PACES = {
    "even": Pace(),
    "crowded": Pace(arrive=1.0, serve=0.5, now=0.1, together=8),
    "quiet": Pace(arrive=0.05, serve=0.1, now=0.5, together=1),
    "held": Pace(arrive=1.0, serve=1.0, pause=0.3, together=3, flits=4),
    "refused": Pace(arrive=1.0, serve=0.9, refuse=0.9, malform=0.02, together=2),
    "malformed": Pace(arrive=0.9, serve=0.7, malform=0.6, refuse=0.3, together=6),
    "sessions": Pace(arrive=0.9, serve=0.7, malform=0.2, clear=0.03, together=6),
    "one list": Pace(arrive=0.5, serve=0.9, now=0.9, refuse=0, malform=0, together=1, outputs=1, flits=1),
}


@cocotb.test(timeout_time=200, timeout_unit="us")
@cocotb.parametrize(style=list(_PACES))
async def random_traffic(dut, style: str) -> None:
    bench = IngressBench(dut)
    await bench.start()
    await bench.run(1800, _PACES[style])
    await bench.drain()


@cocotb.test(timeout_time=20, timeout_unit="us")
async def lone_unit_leaves_at_once(dut) -> None:
    """A flit whose first beat comes in cycle 0 is told in cycle 1; begun in 1 it is out in 2, beat behind beat."""
    bench = IngressBench(dut)
    await bench.start()
    beats = bench.link.beats
    for wait in range(bench.cfg.slot_cycles):
        bench.send(random_unit(bench.rng, bench.fields(3, 1), "no read", 1), 2)
        pace = Pace(arrive=1, serve=0, now=0)
        arrivals = [bench.next_beat(pace) for _ in range(beats)]
        assert not (await bench.cycle(arrivals[0], Choice(bench.phase == 0))).lone
        told = await bench.cycle(arrivals[1], Choice(bench.phase == 0, now=True, output=2, queue=3))
        assert told.lone == (2, 3, 1) and bench.dut.lone.value == 1
        for n in range(beats):
            arrival = arrivals[n + 2] if n + 2 < beats else None
            told = await bench.cycle(arrival, Choice(bench.phase == 0))
            assert told.beat and bench.dut.o_valid.value == 1, f"beat {n} is not there, {wait} cycles later"
        for _ in range(1 + wait % 3):
            await bench.cycle(None, Choice(bench.phase == 0))
    await bench.drain()


@cocotb.test(timeout_time=100, timeout_unit="us")
async def one_list_next_to_another(dut) -> None:
    """Units for one list come as fast as they can, and the last one goes in the very cycle in which the next comes."""
    bench = IngressBench(dut)
    await bench.start()
    for queue in (0, 1):
        for count in range(12):
            bench.send(random_unit(bench.rng, bench.fields(queue, 1), "no read", 1 + count % 2), 1)
    pace = Pace(arrive=1, serve=0, now=1)
    while bench.flits or bench.beats:
        arrival = bench.next_beat(pace)
        await bench.cycle(arrival, bench.choose(pace))
    await bench.drain()


@cocotb.test(timeout_time=100, timeout_unit="us")
async def pool_that_is_full(dut) -> None:
    """Nothing is served until flits are lost; then everything that was complete leaves and the pool works on."""
    bench = IngressBench(dut)
    await bench.start()
    for _ in range(2):
        rest = bench.link.pool_flits
        lost = Pace(arrive=1, serve=0, now=0, empty=0, refuse=0, malform=0, outputs=2, flits=1)
        for _ in range((rest + 12) * bench.link.beats):
            if len(bench.flits) < 8:
                bench.some_units(lost)
            await bench.cycle(bench.next_beat(lost), bench.choose(lost))
        assert not bench.golden.free, "the pool did not fill"
        # full: a place that becomes free is used again at once
        await bench.run(400, Pace(arrive=1, serve=1, now=0, empty=0))
        await bench.drain()


@cocotb.test(timeout_time=100, timeout_unit="us")
@cocotb.parametrize(how=MALFORMED)
async def malformed_between_sound(dut, how: str) -> None:
    """Each kind of malformed unit between sound ones of its queue."""
    bench = IngressBench(dut)
    await bench.start()
    pace = Pace(arrive=1, serve=1, now=0)
    for _ in range(12):
        queue = int(bench.rng.integers(bench.link.queues))
        sound, victim, after = (random_unit(bench.rng, bench.fields(queue, 5), "no read") for _ in range(3))
        refused = bool(bench.rng.integers(2))
        bench.send(sound, 1)
        bench.send(malformed(bench.rng, victim, how), 0, refused)
        bench.send(after, 1)
        COVER.hit(how)
        while bench.flits or bench.beats:
            await bench.cycle(bench.next_beat(pace), bench.choose(pace))
    await bench.drain()


@cocotb.test(timeout_time=100, timeout_unit="us")
@cocotb.parametrize(fill=FILLS)
async def refused_units(dut, fill: str) -> None:
    """Units of each kind and size, flits of two queues in turn: those with a read go to the responder."""
    bench = IngressBench(dut)
    await bench.start()
    pace = Pace(arrive=1, serve=1, now=0)
    for count in range(60):
        flits = 1 + count % 4
        one, two = (random_unit(bench.rng, bench.fields(queue, 1), fill, flits) for queue in (0, 2))
        for pair in zip(one, two, strict=True):
            bench.send(list(pair), 1, True)
        COVER.hit(fill)
    response = random_unit(bench.rng, bench.fields(1, 1), "no read")
    bench.send(response, 1, True)
    COVER.hit("refused response")
    while bench.flits or bench.beats:
        await bench.cycle(bench.next_beat(pace), bench.choose(pace))
    await bench.drain()


def _writes(bench: IngressBench, words: int, *, short: bool) -> bytes:
    """Packets that end behind so many words: as many as there can be, so that each step of a beat sees a header begin,
    or long ones."""
    text = b""
    while words:
        take = 4 + words % 4 if short else words if words <= 132 else min(132, words - 4)
        text += make_packet(bench.rng, PacketOpcode.WRITE, 4 * take - 16).data
        words -= take
    return text


async def _all_are_seen(bench: IngressBench, *, answered: bool) -> None:
    pace = Pace(arrive=1, serve=1, now=0)
    while bench.flits or bench.beats:
        told = await bench.cycle(bench.next_beat(pace), bench.choose(pace))
        assert not (told.dropped_unit and answered), "the golden model drops a unit with a read"


@cocotb.test(timeout_time=200, timeout_unit="us")
async def read_at_every_word(dut) -> None:
    """A read that begins at each word of a unit in turn, over row and flit borders too, behind one write or many."""
    bench = IngressBench(dut)
    await bench.start()
    read = make_packet(bench.rng, PacketOpcode.READ, 64).data
    for flits in (1, 2, 3):
        for words in range(4 * flits, 58 * flits - 3, 3):
            for short in (False, True):
                text = _writes(bench, words, short=short)
                bench.send(unit_of(bench.rng, text + read, bench.fields(0, 1), flits), 1, True)
        await _all_are_seen(bench, answered=True)
    await bench.drain()


@cocotb.test(timeout_time=200, timeout_unit="us")
async def nonsense_at_every_word(dut) -> None:
    """Each opcode that is no request's, in front of a read: what stands behind is not looked at."""
    bench = IngressBench(dut)
    await bench.start()
    read = make_packet(bench.rng, PacketOpcode.READ, 64).data
    wrong = [code for code in range(16) if code > PacketOpcode.SIGNAL]
    for flits in (1, 2):
        for words in range(4 * flits, 58 * flits - 7):
            nonsense = bytes([wrong[words % len(wrong)], 0, 0, 0]) + bench.rng.bytes(12)
            text = _writes(bench, words, short=True) + nonsense + read
            bench.send(unit_of(bench.rng, text, bench.fields(0, 1), flits), 1, True)
        await _all_are_seen(bench, answered=False)
    await bench.drain()


@cocotb.test(timeout_time=100, timeout_unit="us")
async def header_of_one_bit(dut) -> None:
    """Headers of writes, zeros but for one bit, each bit of a word at each place of a beat: they do not end a unit."""
    bench = IngressBench(dut)
    await bench.start()
    read = make_packet(bench.rng, PacketOpcode.READ, 64).data
    for bit in range(32):
        header = (1 << 32 + bit).to_bytes(16, "little")
        for shift in range(4):
            text = _writes(bench, 4 + shift, short=True) + 11 * header + read
            bench.send(unit_of(bench.rng, text, bench.fields(0, 1), 1), 1, True)
    await _all_are_seen(bench, answered=True)
    await bench.drain()


@cocotb.test(timeout_time=100, timeout_unit="us")
async def clear_and_what_comes_next(dut) -> None:
    """Sessions end with units open in many queues; flits of the next one come before the old ones are gone."""
    bench = IngressBench(dut)
    await bench.start()
    pace = Pace(arrive=1, serve=0.5, now=0)
    for count in range(40):
        for queue in range(bench.link.queues):
            unit = random_unit(bench.rng, bench.fields(queue, 1), "no read", 2 + count % 3)
            bench.send(unit[: int(bench.rng.integers(1, len(unit) + 1))], 1)
        while bench.flits or bench.beats:
            await bench.cycle(bench.next_beat(pace), bench.choose(pace))
        await bench.cycle(None, bench.choose(pace), True)
        for queue in bench.rng.permutation(bench.link.queues)[:3]:
            unit = random_unit(bench.rng, bench.fields(int(queue), 1), "no read", 2)
            bench.send(unit[int(bench.rng.integers(2)) :], 1)
        for _ in range(int(bench.rng.integers(1, 3 * bench.link.queues))):
            await bench.cycle(bench.next_beat(pace), bench.choose(pace))
    await bench.drain()


@cocotb.test(skip=manifest().config.link.pool_flits > 64)
async def covered(dut) -> None:
    COVER.require_all()
