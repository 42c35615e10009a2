"""OutputBuffer: every flit on the wire is the golden one, while it comes in and again; what is wrong is spoilt once."""

from collections import deque

import cocotb
from cocotb.triggers import RisingEdge

from rtl.contract.link import DLP_AT, DLP_BYTES, FLIT_BYTES, FLIT_HEADER
from rtl.contract.link_config import LinkConfig
from verif.agents.bench import Bench, manifest
from verif.agents.stall import STYLES, styled
from verif.bench import EVERY, Run
from verif.checks.coverage import Coverage
from verif.golden.framing import Units, unpack
from verif.golden.switch_output import OutputBuffer

_X8 = LinkConfig(classes=2, shared_flits=12, window_flits=20)
_X4 = LinkConfig(classes=2, shared_flits=12, window_flits=20, lanes=4)
_X16 = LinkConfig(classes=2, shared_flits=12, window_flits=20, lanes=16)

RUNS = (
    Run("switch_output_buffer", config=_X8, faults=EVERY),
    Run("switch_output_buffer", config=_X4, regress=True),
    Run("switch_output_buffer", config=_X16, regress=True),
)

COVER = Coverage(
    "switch.output_buffer",
    [
        "payload",
        "nop",
        "control",
        "sent in the cycle after its first beat came",
        "sent again",
        "sent again at once",
        "every slot",
        "wrong parity bit",
        "wrong byte",
        "wrong header",
        "wrong first beat",
        "wrong last beat",
        "wrong DLP or codes: nothing",
        "two wrong bytes",
        "void",
        "void again",
        "a sound flit where a void one was",
        "clear",
        "a flit begins in the cycle of clear",
    ],
)


class BufferBench(Bench):
    """The unit between a source of flits and a wire, with a replay that goes back at random."""

    def __init__(self, dut, sink: str, gaps: str, wrong: float, back: float):
        super().__init__(dut)
        self.ready, self.gap = styled(sink, self.rng), styled(gaps, self.rng)
        self.wrong, self.back = wrong, back
        self.golden = OutputBuffer()
        self.slots = 1 << (self.cfg.window_flits - 1).bit_length()
        self.clear_state()
        self.beats: deque[tuple[int, int, int, bytes, list[int]]] = deque()  # word, header, first, whole flit, parity
        self.came = -1  # index whose first beat came in the last cycle
        self.choice: tuple[str, int, int] = ("nop", 0, 0)  # what is offered: kind, index or head, DLP
        self.wire = deque([self.golden.other(0, 0)])  # taken, not yet out; one began in the cycle after reset
        self.out = 0  # beats of wire[0] that are out
        self.went: dict[int, int] = {}  # how often a flit was sent
        self.voids: set[int] = set()
        self.used: set[int] = set()
        self.last_index = -1
        self.counted = self.spoilt = 0
        for name in ("i_valid", "i", "header", "put_index", "clear", "payload", "index", "control", "head", "dlp"):
            getattr(dut, name).value = 0
        dut.o__ready.value = 0

    def clear_state(self) -> None:
        """A new session: nothing is in the window."""
        self.next = self.fresh = self.pos = 1
        self.acked = 0
        self.quiet = True  # a new session is not UP before the flits on the wire have gone

    def make_flit(self) -> tuple[bytes, int, list[int]]:
        """A flit, its header for this hop, and its parity, perhaps wrong."""
        rng = self.rng
        flit = bytearray(rng.bytes(FLIT_BYTES))
        parity = [byte.bit_count() % 2 for byte in flit]
        if rng.random() < self.wrong:
            hits = int(rng.integers(1, 3))
            COVER.when(hits == 2, "two wrong bytes")
            for _ in range(hits):
                size = self.cfg.beat_bytes
                where = (0, 4), (0, size), (FLIT_BYTES - size, DLP_AT), (0, DLP_AT), (DLP_AT, FLIT_BYTES)
                at = int(rng.integers(*where[int(rng.integers(5))]))
                COVER.when(at < 4, "wrong header")
                COVER.when(at < size, "wrong first beat")
                COVER.when(FLIT_BYTES - size <= at < DLP_AT, "wrong last beat")
                COVER.when(at >= DLP_AT and hits == 1, "wrong DLP or codes: nothing")
                if rng.random() < 0.5:
                    parity[at] ^= 1
                    COVER.hit("wrong parity bit")
                else:
                    flit[at] ^= 1 << int(rng.integers(8))
                    COVER.hit("wrong byte")
        header = {f.name: int(rng.integers(1 << f.width)) for f in FLIT_HEADER}
        return bytes(flit), FLIT_HEADER.pack(header), parity

    def drive_input(self, clear: bool) -> int:
        """A beat of a flit, or none. Returns the index of a flit that begins, -1 if none."""
        size = self.cfg.beat_bytes
        begins = -1
        self.quiet &= any(sent.index >= 0 for sent in self.wire)
        room = self.next - 1 - self.acked < self.cfg.window_flits and not self.quiet
        if not self.beats and room and not next(self.gap):
            flit, header, parity = self.make_flit()
            begins = self.next % self.slots
            for n in range(self.cfg.beats):
                part = slice(n * size, (n + 1) * size)
                bits = sum(bit << k for k, bit in enumerate(parity[part]))
                word = int.from_bytes(flit[part], "little") << 2 | bits << 2 + 8 * size
                self.beats.append((word | (n == 0) | (n == self.cfg.beats - 1) << 1, header, n == 0, flit, parity))
        self.dut.i_valid.value = int(bool(self.beats))
        self.dut.put_index.value = self.next % self.slots
        if self.beats:
            word, header, first, flit, parity = self.beats.popleft()
            self.dut.i.value, self.dut.header.value = word, header
            if first and not clear:
                COVER.when(begins in self.voids, "a sound flit where a void one was")
                self.voids.discard(begins)
                self.golden.put(begins, header, flit, parity)
                self.went[begins] = 0
                self.next += 1
                return begins
            COVER.when(first, "a flit begins in the cycle of clear")
        return -1

    def choose(self) -> None:
        """What may go next: a flit that is there, one that was sent before, a control flit, a NOP."""
        rng = self.rng
        dlp = int.from_bytes(rng.bytes(DLP_BYTES), "big")
        if rng.random() < self.back and self.pos > self.acked + 1:
            self.pos = int(rng.integers(self.acked + 1, self.pos))
            if rng.random() < 0.3:
                self.pos = max(self.fresh - 1, self.acked + 1)
        style = rng.random()
        if style < 0.05:
            self.choice = ("control", int.from_bytes(rng.bytes(16), "little"), dlp)
        elif style < 0.9 and self.pos < self.next:
            self.choice = ("payload", self.pos % self.slots, dlp)
        else:
            self.choice = ("nop", 0, dlp)
        kind, what, dlp = self.choice
        self.dut.payload.value, self.dut.control.value, self.dut.dlp.value = kind == "payload", kind == "control", dlp
        self.dut.index.value = what if kind == "payload" else int(rng.integers(self.slots))
        self.dut.head.value = what if kind == "control" else int.from_bytes(rng.bytes(16), "little")

    def taken(self) -> None:
        """The choice begins."""
        kind, what, dlp = self.choice
        COVER.hit(kind)
        if kind != "payload":
            self.wire.append(self.golden.other(what if kind == "control" else 0, dlp))
            self.last_index = -1
            return
        sent = self.golden.payload(what, dlp)
        self.wire.append(sent)
        COVER.when(what == self.came, "sent in the cycle after its first beat came")
        COVER.when(self.went[what], "sent again")
        COVER.when(what == self.last_index, "sent again at once")
        COVER.when(sent.void, "void again" if what in self.voids else "void")
        if sent.void:
            self.voids.add(what)
            body = sent.data[:DLP_AT]
            unit = Units().arrive(body)
            assert unit and unpack(unit) == ([], False), "a receiver would not see an empty unit"
        self.went[what] += 1
        self.used.add(what)
        self.last_index = what
        self.pos += 1
        self.fresh = max(self.fresh, self.pos)

    def check_beat(self) -> None:
        """A beat that leaves."""
        dut, size, n = self.dut, self.cfg.beat_bytes, self.out
        sent = self.wire[0]
        word = int(dut.o__payload.value)
        last = n == self.cfg.beats - 1
        assert word & 3 == (n == 0) | last << 1, f"beat {n} has flags {word & 3:02b}"
        got = (word >> 2).to_bytes(size, "little")
        expected = sent.data[n * size : (n + 1) * size]
        assert got == expected, f"beat {n} of {sent.index}: {got.hex()}, golden {expected.hex()}"
        spoil, bad = int(dut.spoil.value), int(dut.bad_parity.value)
        assert (spoil, bad) == (last and sent.spoil, last and sent.spoil), f"beat {n}: spoil {spoil}, counted {bad}"
        self.counted += bad
        self.out += 1
        if last:
            self.golden.left(sent)
            self.wire.popleft()
            self.spoilt += sent.spoil
            self.out = 0

    async def cycle(self, clear: bool = False) -> None:
        """One cycle."""
        dut, rng = self.dut, self.rng
        self.choose()
        begins = self.drive_input(clear)
        ready = not next(self.ready)
        dut.o__ready.value, dut.clear.value = int(ready), int(clear)
        await RisingEdge(self.clk)
        assert int(dut.enqueue.value) == (begins >= 0), "enqueue is not with the first beat"
        if int(dut.o__valid.value):
            assert self.wire, "a flit that nobody chose"
            if ready:
                self.check_beat()
            else:
                assert not int(dut.bad_parity.value), "counted before the flit has left"
        else:
            assert not self.wire, "a flit that was chosen is not there in the next cycle"
        if int(dut.slot.value):
            self.taken()
        self.came = begins
        if clear:
            COVER.hit("clear")
            self.clear_state()
        elif self.acked < self.fresh - 1 and rng.random() < 0.1:
            self.acked = int(rng.integers(self.acked + 1, self.fresh))
            self.pos = max(self.pos, self.acked + 1)


@cocotb.test(timeout_time=400, timeout_unit="us")
@cocotb.parametrize(sink=list(STYLES), wrong=[0.0, 0.3])
async def flits_are_golden(dut, sink: str, wrong: float) -> None:
    back = 0.2 if wrong else 0.05  # what is void is sent again while others become so
    bench = BufferBench(dut, sink, "rarely" if sink == "never" else "half", wrong, back)
    await bench.start()
    for n in range(1800):
        await bench.cycle(clear=n > 200 and bench.rng.random() < 0.002)
    assert bench.counted == bench.spoilt
    COVER.when(bench.used == set(range(bench.slots)), "every slot")


@cocotb.test(timeout_time=200, timeout_unit="us")
async def what_is_void_stays_void(dut) -> None:
    """All flits are wrong: each is spoilt once, and void whenever it is sent again, whatever became void meanwhile."""
    bench = BufferBench(dut, "never", "never", 1.0, 0.08)
    await bench.start()
    for _ in range(1200 * bench.cfg.beats):
        await bench.cycle()
    assert bench.counted == bench.spoilt > bench.slots


@cocotb.test(timeout_time=200, timeout_unit="us")
async def a_wrong_byte_anywhere_is_seen(dut) -> None:
    """One bit in each of the 236 bytes that count, and in each of the 20 that do not."""
    bench = BufferBench(dut, "never", "never", 0, 0)
    await bench.start()
    make, at = bench.make_flit, iter(range(FLIT_BYTES))

    def one_wrong() -> tuple[bytes, int, list[int]]:
        flit, header, parity = make()
        byte = next(at, None)
        if byte is not None:
            parity[byte] ^= 1
        return flit, header, parity

    bench.make_flit = one_wrong  # type: ignore[method-assign]
    while bench.spoilt < DLP_AT:
        await bench.cycle()
    for _ in range(40 * bench.cfg.beats):
        await bench.cycle()
    assert bench.counted == bench.spoilt == DLP_AT, f"{bench.counted} flits counted"


@cocotb.test(timeout_time=100, timeout_unit="us")
async def flits_follow_without_a_gap(dut) -> None:
    """A wire that takes all gets a flit every flit time, payload as fast as it comes."""
    bench = BufferBench(dut, "never", "never", 0, 0)
    await bench.start()
    begun = 0
    for _ in range(400 * bench.cfg.beats):
        await bench.cycle()
        begun += int(dut.slot.value)
    assert begun == 400, f"{begun} flits in 400 flit times"


@cocotb.test(skip=manifest().config.window_flits >= 64)
async def covered(dut) -> None:
    COVER.require_all()
