"""What drives a Responder: units for it, beats with gaps, who takes its answers; and the count of what it owes."""

from collections import defaultdict, deque

from cocotb.triggers import RisingEdge

from rtl.contract.link import ENDPOINT_BITS, FLIT_BYTES, FLIT_PAYLOAD_BYTES, PACKET_HEADER, PACKET_HEADER_BYTES
from rtl.contract.link import PacketOpcode as Opcode
from verif.agents.bench import Bench
from verif.benches.link.packets import make_packet, random_packet
from verif.benches.switch.units import SentUnit, parity_of, random_unit
from verif.checks.coverage import Coverage
from verif.golden.framing import Packet, Units, flits_of, grouped, header_of, unpack

__all__ = ["COVER", "ResponderBench"]

ASKING = (Opcode.READ, Opcode.FETCH_ADD)
COVER = Coverage(
    "switch.responder",
    [
        *(o.name for o in Opcode if o != Opcode.END),
        *(f"{n} flits" for n in range(1, 5)),
        "own column",
        "dead output",
        "offered, nothing waits",
        "another output is granted in the same slot",
        "dies between look and grant",
        "lives again with a unit under way",
        "malformed packets",
        "nothing to answer",
        "several answers in a unit",
        "answers wait, no unit is asked for",
        "asked from where there is no route",
        "asked from a dead output",
        "route written",
        "every class",
        "a wrong byte",
        "a wrong byte in the first flit of several",
        "a wrong byte in the last flit of several",
        "two wrong flits in a unit",
        "a wrong byte that does not count",
        "routes read",
    ],
)
_ROUTED = 900  # endpoint of port 2 after a write
_HOLE = 77
_DEAD_PORT = 3


class ResponderBench(Bench):
    """The unit between columns with units for it, and a scheduler for its own row."""

    def __init__(self, dut, load: float, row: float, spoil: float):
        super().__init__(dut)
        cfg = self.cfg
        self.n, self.link = cfg.outputs, cfg.link
        self.load, self.row, self.spoil = load, row, spoil
        self.waiting: list[deque[SentUnit]] = [deque() for _ in range(self.n)]
        self.under_way: list[SentUnit | None] = [None] * self.n
        self.beats: list[deque[tuple[SentUnit, int, int]]] = [deque() for _ in range(self.n)]  # unit, flit, beat
        self.dead = 0
        self.looked, self.looked_dead = 0, 0  # offers and dead outputs at the end of the slot's first cycle
        self.lists = self.more = 0
        self.to = self.here = (0, 0)  # output and queue of the row's unit under way, and of the flit that shows
        self.expected: dict[tuple[int, int], deque[bytes]] = defaultdict(deque)  # by class and who asked
        self.answered = 0
        self.asked = self.wayless = self.spoilt = 0  # what is to be answered, of that without a way back; wrong flits
        self.told = {"answered": 0, "unsent_flits": 0, "bad_parity": 0}
        self.units = Units()
        self.part = b""
        self.t = self.idle_slots = 0
        self.classes: set[int] = set()
        for name in (
            *("slot", "start", "first", "out_port", "unit_queue", "now", "route_write", "route_endpoint", "route"),
            *("dead", "granted", "arrives", "arrivals", "read_endpoint"),
        ):
            getattr(dut, name).value = 0
        dut.alive_outputs.value = (1 << self.n) - 1 - (1 << _DEAD_PORT)
        dut.same_outputs.value = (1 << self.n) - 1

    def from_where(self, packet: Packet) -> Packet:
        """The packet from one of the sources that have a route, or have none."""
        source = int(self.rng.choice([0, 1, 2, _DEAD_PORT, _ROUTED, _HOLE, 1, 2]))
        header = PACKET_HEADER.pack(packet.header | {"source": source}).to_bytes(PACKET_HEADER_BYTES, "little")
        return Packet(packet.class_, packet.endpoint, header + packet.data[PACKET_HEADER_BYTES:])

    def make_units(self) -> list[SentUnit]:
        """Units with packets of every kind, some with a wrong byte or two."""
        units = self.sound_units()
        for unit in units:
            while self.rng.random() < self.spoil:
                unit.wrong[int(self.rng.integers(len(unit.flits)))] = int(self.rng.integers(FLIT_BYTES))
        return units

    def sound_units(self) -> list[SentUnit]:
        """Units with packets of every kind."""
        rng, classes = self.rng, self.link.classes
        class_, endpoint = int(rng.integers(classes)), int(rng.integers(1 << ENDPOINT_BITS))
        if rng.random() < 0.15:
            fields = {"endpoint": endpoint, "class_": class_, "kind": 0, "zero": 0}
            flits = random_unit(rng, fields, "read at the end", int(rng.integers(1, 5)))
            return [SentUnit([f[:FLIT_PAYLOAD_BYTES] for f in flits])]
        packets = []
        if rng.random() < 0.15:
            packets = [make_packet(rng, Opcode.ERROR_RESPONSE, 0), random_packet(rng, 1, kind=1)]
        else:
            for _ in range(int(rng.integers(1, 12))):
                asks = make_packet(rng, int(rng.choice(ASKING)), int(rng.integers(1, 65)), bool(rng.integers(2)))
                packets.append(asks if rng.random() < 0.6 else random_packet(rng, 1, kind=0))
        placed = [self.from_where(Packet(class_, endpoint, p.data)) for p in packets]
        return [SentUnit(flits_of(group)) for group in grouped(placed)]

    def expect(self, unit: SentUnit) -> None:
        """The answers to a unit that the responder has taken."""
        COVER.when(unit.wrong and unit.sound, "a wrong byte that does not count")
        if not unit.sound:
            last = len(unit.flits) - 1
            COVER.hit("a wrong byte")
            COVER.when(last and list(unit.wrong) == [0], "a wrong byte in the first flit of several")
            COVER.when(last and list(unit.wrong) == [last], "a wrong byte in the last flit of several")
            COVER.when(len(unit.wrong) > 1, "two wrong flits in a unit")
            self.spoilt += sum(byte < FLIT_PAYLOAD_BYTES for byte in unit.wrong.values())
            return
        packets, bad = unpack(unit.flits)
        COVER.when(bad, "malformed packets")
        COVER.hit(f"{len(unit.flits)} flits")
        COVER.when(not any(p.header["opcode"] in ASKING for p in packets), "nothing to answer")
        for packet in packets:
            asked = packet.header
            COVER.hit(Opcode(asked["opcode"]).name)
            if asked["opcode"] not in ASKING:
                continue
            self.asked += 1
            known = asked["source"] in (*range(self.cfg.ports), _ROUTED)
            COVER.when(not known, "asked from where there is no route")
            COVER.when(asked["source"] == _DEAD_PORT, "asked from a dead output")
            if not known or asked["source"] == _DEAD_PORT:
                self.wayless += 1
                continue
            answer = dict.fromkeys(asked, 0) | {
                "opcode": int(Opcode.ERROR_RESPONSE),
                "tag": asked["tag"],
                "source": packet.endpoint,
                "address": asked["address"],
            }
            text = PACKET_HEADER.pack(answer).to_bytes(PACKET_HEADER_BYTES, "little")
            self.expected[packet.class_, asked["source"]].append(text)
            self.classes.add(packet.class_)
        COVER.when(len(self.classes) == self.link.classes, "every class")

    def columns(self) -> int:
        """In the first cycle of a slot: what the scheduler lets send. Returns what is granted."""
        granted = 0
        for c in range(self.n):
            unit = self.under_way[c]
            offered = self.looked >> c & 1
            if unit is None and offered and self.waiting[c]:
                unit = self.waiting[c].popleft()
                unit.ours = True
                granted |= 1 << c
                COVER.hit("own column" if c == self.n - 1 else "dead output")
            elif unit is None and not self.looked_dead >> c & 1 and c < self.n - 1 and self.rng.random() < 0.4:
                unit = self.make_units()[0]  # for a port that lives
                granted |= 1 << c
                COVER.when(self.dead >> c & 1, "dies between look and grant")
            COVER.when(unit is None and offered, "offered, nothing waits")
            if unit:
                self.beats[c].extend((unit, unit.sent, n) for n in range(self.link.beats))
                unit.sent += 1
                self.under_way[c] = unit if unit.sent < len(unit.flits) else None
        COVER.when(granted & self.looked and granted & ~self.looked, "another output is granted in the same slot")
        return granted

    def show(self) -> None:
        """The beats of all columns."""
        size = self.link.beat_bytes
        valid = word = 0
        width = 4 + 9 * size
        for c, beats in enumerate(self.beats):
            if not beats:
                continue
            unit, flit, n = beats.popleft()
            text = unit.flits[flit].ljust(FLIT_BYTES, b"\xa5")[n * size : (n + 1) * size]
            parity = parity_of(text)
            at = unit.wrong.get(flit, -1) - n * size
            if 0 <= at < size:
                text = text[:at] + bytes([text[at] ^ 1 << int(self.rng.integers(8))]) + text[at + 1 :]
            last = n == self.link.beats - 1
            flags = (flit == 0) << 2 + 9 * size | (flit == len(unit.flits) - 1) << 3 + 9 * size
            valid |= 1 << c
            flags |= parity << 2 + 8 * size
            word |= (int(n == 0) | last << 1 | int.from_bytes(text, "little") << 2 | flags) << c * width
            if unit.ours and last and flit == len(unit.flits) - 1:
                self.expect(unit)
            COVER.when(unit.ours and c < self.n - 1 and not self.dead >> c & 1, "lives again with a unit under way")
        self.dut.arrives.value, self.dut.arrivals.value = valid, word

    def send_row(self) -> None:
        """In the first cycle of a slot: the responder's own row."""
        dut, queues = self.dut, self.link.queues
        start = first = 0
        if self.more:
            start = 1
        elif self.lists and self.rng.random() < self.row:
            bits = [b for b in range(self.n * queues) if self.lists >> b & 1]
            start = first = 1
            self.to = divmod(int(self.rng.choice(bits)), queues)
        dut.start.value, dut.first.value = start, first
        dut.out_port.value, dut.unit_queue.value = self.to

    async def cycle(self) -> None:
        """One cycle."""
        dut, rng = self.dut, self.rng
        slot = self.t % self.cfg.slot_cycles == 0
        if rng.random() < 0.02:
            self.dead ^= 1 << int(rng.integers(self.n - 1))
        c = int(rng.integers(self.n))
        if rng.random() < self.load and len(self.waiting[c]) < 8:
            self.waiting[c].extend(self.make_units())
        self.show()
        granted = self.columns() if slot else 0
        dut.slot.value, dut.dead.value = int(slot), self.dead
        dut.granted.value = granted
        if slot:
            self.send_row()
        await RisingEdge(self.clk)
        offers = int(dut.offers.value)
        assert offers.bit_count() <= 1, f"offers {offers:b}"
        if slot:
            takes = int(dut.takes.value)
            assert takes & granted == self.looked & granted, f"takes {takes:b} of {granted:b}, offered {self.looked:b}"
            assert not offers & ~(self.dead | 1 << self.n - 1), f"offers {offers:b}, not dead"
            self.looked, self.looked_dead = offers, self.dead
            self.lists, self.more = int(dut.lists.value), int(dut.more.value)
            self.idle_slots = 0 if offers or takes or any(u and u.ours for u in self.under_way) else self.idle_slots + 1
            COVER.when(self.idle_slots > 4 * self.n and self.lists, "answers wait, no unit is asked for")
        if int(dut.departs.value):
            self.take(int(dut.departure.value))
        for name in self.told:
            self.told[name] += int(getattr(dut, name).value)
        self.t += 1

    def take(self, word: int) -> None:
        """A beat of an answer."""
        size = self.link.beat_bytes
        data = (word >> 2 & (1 << 8 * size) - 1).to_bytes(size, "little")
        parity = word >> 2 + 8 * size & (1 << size) - 1
        assert parity == parity_of(data), "parity is wrong"
        if word & 1:
            self.part, self.here = b"", self.to
        self.part += data
        if not word & 2:
            return
        flit, self.part = self.part[:FLIT_PAYLOAD_BYTES], b""
        header = header_of(flit)
        source = header["endpoint"]
        port = 2 if source == _ROUTED else source
        assert (port, 2 * header["class_"] + 1) == self.here, f"an answer to {source} goes to {self.here}"
        unit = self.units.arrive(flit)
        if not unit:
            return
        packets, bad = unpack(unit)
        assert not bad and packets, "answers that are none"
        COVER.when(len(packets) > 1, "several answers in a unit")
        for packet in packets:
            key = (packet.class_, packet.endpoint)
            assert self.expected[key], f"an answer to {key} that nobody asked for: {packet.header}"
            text = self.expected[key].popleft()
            told = PACKET_HEADER.unpack(int.from_bytes(text, "little"))
            assert packet.data == text, f"to {key}: {packet.header}, not {told}"
            self.answered += 1

    async def begin(self) -> None:
        """Start; an endpoint more gets a route."""
        await self.start()
        self.dut.route_write.value, self.dut.route_endpoint.value, self.dut.route.value = 1, _ROUTED, 0x80 | 2
        await RisingEdge(self.clk)
        self.dut.route_write.value = 0
        COVER.hit("route written")
        for endpoint, route in ((0, 0x80), (3, 0x83), (_ROUTED, 0x82), (_HOLE, 0)):
            self.dut.read_endpoint.value = endpoint
            for _ in range(2):
                await RisingEdge(self.clk)
            assert int(self.dut.read_route.value) == route, f"endpoint {endpoint} has route {self.dut.read_route.value}"
        COVER.hit("routes read")

    async def drain(self) -> None:
        """Nothing comes any more: all is answered."""
        self.load, self.row = 0, 1
        for c in range(self.n - 1):
            self.waiting[c].clear()
        for _ in range(400):
            for _ in range(8 * self.cfg.slot_cycles):
                await self.cycle()
            done = not any(self.expected.values()) and self.told["answered"] >= self.asked
            if done and not any(self.waiting) and not any(self.beats):
                break
        left = {key: len(x) for key, x in self.expected.items() if x}
        assert not left, f"not answered: {left}"
        assert not any(self.waiting), "units wait in the responder's column for ever"
        for _ in range(16 * self.cfg.slot_cycles):  # answers without a way back are still dropped
            await self.cycle()
        told = self.told
        assert told["answered"] == self.asked, f"tells {told['answered']} answers, not {self.asked}"
        assert told["bad_parity"] == self.spoilt, f"tells {told['bad_parity']} wrong flits, not {self.spoilt}"
        unsent = told["unsent_flits"]  # answers to the same endpoint may share one
        assert min(1, self.wayless) <= unsent <= self.wayless, f"tells {unsent} flits of {self.wayless} answers unsent"
