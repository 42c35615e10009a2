"""Fetch: every word of every client once and in order, whatever HBM and the consumers do; errors contained."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import cocotb

from rtl.base.axi import FETCH_ID
from rtl.contract.config import load
from rtl.contract.isa import Cause, Queue
from verif.agents.stall import STYLES, never, randomly, styled
from verif.bench import Run, noticed_by
from verif.benches.issue.fetch_driver import COVERAGE, WORD_BYTES, FetchBench

_DEEP_AND_WIDE = load("tiny", ["issue.queue_depth=16", "dma.ring_depth=64", "hbm.port_bytes=128"])

_PLANTED = (
    "asks for more words than there is room",
    "an answer with an error counts as a word",
    "the HBM region is not checked",
    "an answer goes to the client that asked last",
    "a queue reads ahead as far as is built",
    *noticed_by("goes_on_where_it_is_asked_to/style=never", "a client seeks while answers are due"),
)

RUNS = (Run("fetch", faults=_PLANTED), Run("fetch", config=_DEEP_AND_WIDE, seeds=(1,), regress=True))


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(style=STYLES)
async def brings_every_word_once_and_in_order(dut: Any, style: str) -> None:
    """Several programs one after the other, all clients at once, random latency."""
    bench = FetchBench(dut)
    bench.memory.latency = int(bench.rng.integers(2, 60))
    bench.memory.jitter = 30
    bench.memory.stall = styled(style, bench.rng)
    bench.memory.idle = randomly(bench.rng, 0.2)
    for sink in bench.sinks:
        sink.stall = styled(style, bench.rng)
    await bench.start()
    for round_ in range(3):
        regions = {}
        for c in range(bench.clients):
            count = 0 if c == round_ == 2 else int(bench.rng.integers(0, 40))
            regions[c] = int(bench.rng.integers(0, bench.capacity // WORD_BYTES - count)) * WORD_BYTES, count
            COVERAGE.when(count == 0, "no_words")
        await bench.load(regions)
        await bench.settle()
        bench.check()
        COVERAGE.when(round_, "loaded_again")
    ids = [who for who, _ in bench.memory.requests]
    COVERAGE.when(len(set(ids[:8])) > 2, "interleaved_ids")


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(part=[1, 2, 4])
async def reads_ahead_as_far_as_there_is_room(dut: Any, part: int) -> None:
    """A consumer that does not take leaves exactly its part of the RAM and one word unread, and none is lost."""
    bench = FetchBench(dut)
    bench.use(part)
    for sink in bench.sinks:
        sink.stall = iter(lambda: True, None)
    await bench.start()
    depth = bench.deepest
    await bench.load({c: (c * 65536, depth + 20) for c in range(bench.clients)})
    await bench.cycles(400 + 20 * depth * bench.clients)
    for c in range(bench.clients):
        asked = len(bench.asked(c))
        assert asked == bench.room(c), f"client {c} asked for {asked} words"
    COVERAGE.hit("full")
    for sink in bench.sinks:
        sink.stall = never()
    await bench.settle()
    bench.check()


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def asks_for_all_in_turn(dut: Any) -> None:
    """Nobody takes a word: until its part is full, a client's next request waits for one of every other at most."""
    bench = FetchBench(dut)
    for sink in bench.sinks:
        sink.stall = iter(lambda: True, None)
    loading = True
    bench.memory.stall = iter(lambda: loading, None)
    await bench.start()
    clients = bench.rng.permutation(bench.clients).tolist()
    await bench.load({c: (c * 65536, bench.room(c) + 20) for c in clients})
    loading = False
    await bench.cycles(400 + 20 * bench.depth * bench.clients)
    order = [who - FETCH_ID for who, _ in bench.memory.requests[1:]]  # the first was alone
    for c in clients:
        places = [-1, *(n for n, who in enumerate(order) if who == c)]
        for before, place in pairwise(places[:-1]):  # the last one needs that a word has come to the front
            between = order[before + 1 : place]
            assert len(set(between)) == len(between), f"client {c} waits while others ask again: {between}"
    COVERAGE.hit("in turn")


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(style=["never", "mostly"])
async def counts_the_words_of_long_programs(dut: Any, style: str) -> None:
    """Far into its words every client reads ahead as far as at first, and tells the number of one that is missing.

    `style`: of requests that HBM refuses; if it does mostly, a client has room for more than one."""
    bench = FetchBench(dut)
    bench.memory.latency, bench.memory.jitter = 4, 60
    bench.memory.stall = styled(style, bench.rng)
    most = [0] * bench.clients  # words that are taken, before all are

    def stall(client: int) -> Iterator[bool]:
        for often in randomly(bench.rng, 0.3):
            yield often or len(bench.sinks[client].taken) >= most[client]

    for c, sink in enumerate(bench.sinks):
        sink.stall = stall(c)
    await bench.start()
    for longest in (280, 400):  # twice what is read ahead, and more
        missing = bench.rng.integers(longest // 2, longest, bench.clients).tolist()
        most[:] = [n - 2 * bench.room(c) for c, n in enumerate(missing)]
        regions = {c: (c << 16, n + int(bench.rng.integers(1, 100))) for c, n in enumerate(missing)}
        bench.broken = {base + WORD_BYTES * missing[c] for c, (base, _) in regions.items()}
        bench.memory.requests.clear()
        await bench.load(regions)
        for sink, n in zip(bench.sinks, most, strict=True):
            await sink.count(n)
        await bench.cycles(600)
        for c, n in enumerate(most):
            asked = len(bench.asked(c))
            assert asked == n + bench.room(c), f"client {c} asked for {asked} words, of which {n} are taken"
        most[:] = [1 << 32] * bench.clients
        await bench.settle()
        bench.check()
    COVERAGE.hit("long")


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def keeps_faults_to_their_client(dut: Any) -> None:
    """Bus errors, and regions that do not lie in HBM, at their edges."""
    bench = FetchBench(dut)
    bench.memory.jitter = 20
    await bench.start()
    top = bench.capacity
    for round_ in range(4):
        regions: dict[int, tuple[int, int]] = {0: (top - 5 * WORD_BYTES, 5), 1: (4096, 30), 2: (8192, 9), 3: (0, 12)}
        regions[4] = [(top - 5 * WORD_BYTES, 6), (top, 1), (64, 3), (1 << 50, 1)][int(bench.rng.integers(4))]
        regions[5] = [(0, 1 << 32), (0, 1 << 63), (128 + 1, 1), (top, 0)][int(bench.rng.integers(4))]
        bench.broken = {4096 + WORD_BYTES * int(bench.rng.integers(30)), 8192}
        await bench.load(regions)
        await bench.settle()
        bench.check()
        # each client its own, of half of them a word is missing
        regions = {c: ((c + 1) << 16, int(bench.rng.integers(20, 70))) for c in range(bench.clients)}
        missing = [base + WORD_BYTES * int(bench.rng.integers(1, count)) for base, count in regions.values()]
        bench.broken = set(missing[round_ % 2 :: 2])
        await bench.load(regions)
        await bench.settle()
        bench.check()
        bench.regions.clear()
    for name in ("bus_error", "out_of_range", "misaligned", "end_of_hbm"):
        COVERAGE.hit(name)


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(style=["never", "half"])
async def goes_on_where_it_is_asked_to(dut: Any, style: str) -> None:
    """Words from the number sought on, and none before; errors of what is left are forgotten; room is what it was."""
    bench = FetchBench(dut)
    bench.memory.jitter = 20
    bench.memory.stall = styled(style, bench.rng)
    for sink in bench.sinks:
        sink.stall = randomly(bench.rng, 0.3)
    await bench.start()
    for _ in range(20):
        bench.memory.latency = int(bench.rng.integers(2, 60))
        count = int(bench.rng.integers(1, 80))
        most = bench.capacity // WORD_BYTES - count
        bases = [
            int(bench.rng.integers(most >> bench.rng.integers(most.bit_length()) or 1)) * WORD_BYTES for _ in Queue
        ]
        bench.broken = {
            base + WORD_BYTES * int(bench.rng.integers(count)) for base in bases if bench.rng.random() < 0.5
        }
        await bench.load({c: (base, count) for c, base in enumerate(bases)})
        for _ in range(int(bench.rng.integers(1, 4))):
            await bench.cycles(int(bench.rng.integers(1, 120)))
            c = int(bench.rng.integers(len(Queue)))
            COVERAGE.when(bench.cause(c)[0], "sought behind an error")
            COVERAGE.when(bench.memory.outstanding, "sought while answers were due")
            await bench.seek(c, int(bench.rng.integers(count + 1)))
        await bench.settle()
        bench.check()
    for sink in bench.sinks:
        sink.stall = iter(lambda: True, None)
    bench.broken = set()
    for client in range(len(Queue)):
        await bench.load({client: (client << 16, 500)})
        await bench.cycles(1200)
        bench.memory.requests.clear()
        await bench.seek(client, 300)
        await bench.cycles(1200)
        first = (client << 16) + 300 * WORD_BYTES
        assert bench.asked(client) == [first + WORD_BYTES * n for n in range(bench.room(client))]


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(style=["never", "half"])
async def brings_words_of_registers(dut: Any, style: str) -> None:
    """Each queue its own word of 32 bits, of any place in HBM, while all fetch; an error is told to who asked."""
    bench = FetchBench(dut)
    bench.memory.jitter = 20
    bench.memory.stall, bench.memory.idle = styled(style, bench.rng), randomly(bench.rng, 0.2)
    await bench.start()
    await bench.load({c: (c << 16, 60) for c in range(bench.clients)})
    wanted = [0] * len(Queue)

    async def ask(queue: int) -> None:
        for n in range(40):
            number = int(bench.rng.integers(bench.capacity >> 2))
            if n % 8 == 0:
                bench.broken.add(number * 4 & -WORD_BYTES)
            wanted[queue] = 1
            COVERAGE.when(sum(wanted) > 1, "words of two registers at once")
            found, failed = await bench.peek(queue, number)
            wanted[queue] = 0
            want = bench.beat(4 * number)
            COVERAGE.when(want is None, "a register's word fails")
            assert failed == (want is None), f"queue {queue}, word {number:#x}"
            assert failed or found == want, f"queue {queue}, word {number:#x}: {found:#x}, not {want:#x}"
            await bench.cycles(int(bench.rng.integers(1, 30)))

    for task in [cocotb.start_soon(ask(queue)) for queue in range(len(Queue))]:
        await task
    await bench.settle()
    bench.broken.clear()
    bench.check()


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def knows_the_end_of_hbm(dut: Any) -> None:
    """Regions of any base and size, to the last word and one further, or with one bit too many; nobody takes words."""
    bench = FetchBench(dut)
    bench.memory.latency = 2
    for sink in bench.sinks:
        sink.stall = iter(lambda: True, None)
    await bench.start()
    rng, words = bench.rng, bench.capacity // WORD_BYTES
    depth = bench.deepest
    for round_ in range(40):
        regions = {}
        for c in range(bench.clients):
            first = words - 1 - int(rng.integers(0, 1 << rng.integers(1, words.bit_length())))
            base, count = first * WORD_BYTES, words - first + (round_ + c) % 2
            if rng.random() < 0.3:  # accepted, or not for one bit
                base, count = base ^ 1 << int(rng.integers(64)), int(rng.integers(1, count + 1))
            elif rng.random() < 0.3:
                count ^= 1 << int(rng.integers(64))
            elif rng.random() < 0.2:
                base = int.from_bytes(rng.bytes(8), "little")
            if rng.random() < 0.2:  # none, or one bit of them
                count = 0 if rng.random() < 0.5 else 1 << int(rng.integers(32))
            regions[c] = base, count
        await bench.load(regions)
        await bench.cycles(3 * bench.clients * depth * WORD_BYTES // bench.cfg.hbm.port_bytes + 40)
        assert bench.dut.idle.value == 1
        for c, (base, count) in regions.items():
            cause, number, address = bench.cause(c)
            asked = bench.asked(c)
            if bench.is_refused(base, count):
                assert (cause, number, address) == (Cause.OUT_OF_RANGE, 0, base & ((1 << 40) - 1)), (
                    f"{base:#x}, {count}"
                )
                assert asked == [], f"client {c} reads what is not HBM"
            else:
                assert cause == Cause.NONE, f"client {c} refused {count} words at {base:#x}"
                assert asked == [base + WORD_BYTES * n for n in range(min(count, bench.room(c)))]
        bench.memory.requests.clear()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def starts_at_once_and_keeps_the_rate(dut: Any) -> None:
    """First request 2 cycles after its load; alone, a client gets a word in 7 cycles or better."""
    bench = FetchBench(dut)
    bench.use(1)
    bench.memory.latency = 8
    await bench.start()
    await bench.cycles(5)
    before = bench.memory.now
    await bench.load({0: (0, 64), 5: (65536, 8)})
    cycles = 0
    while len(bench.sinks[0].taken) < 64:
        await bench.edge
        cycles += 1
        assert cycles < 64 * 7 + 30, "slower than an instruction in 7 cycles"
    assert bench.memory.first_request is not None
    assert bench.memory.first_request - before <= 4, "the first request came late"
    await bench.settle()
    bench.check()
    COVERAGE.require_all()
