"""Clients of a fetch unit, the memory that they read, and what each must bring."""

from dataclasses import replace
from hashlib import shake_128
from typing import Any

import cocotb

from rtl.base.axi import FETCH_ID
from rtl.contract.isa import Cause, Queue
from rtl.issue.fetch import FETCH_STATUS, fetch_clients
from verif.agents.axi_read import AxiReadMemory
from verif.agents.bench import Bench
from verif.agents.opened import opened
from verif.agents.stream import StreamSink
from verif.checks.coverage import Coverage

__all__ = ["COVERAGE", "WORD_BYTES", "FetchBench"]

COVERAGE = Coverage(
    "fetch",
    ["full", "interleaved_ids", "bus_error", "out_of_range", "misaligned", "end_of_hbm", "no_words", "loaded_again"]
    + ["limited", "in turn", "long", "sought behind an error", "sought while answers were due"]
    + ["words of two registers at once", "a register's word fails"],
)
_STATUS = opened(FETCH_STATUS)
WORD_BYTES = 128


class FetchBench(Bench):
    """Clients load regions of a memory whose words say where they are."""

    def __init__(self, dut: Any):
        super().__init__(dut)
        self.clients = fetch_clients(self.cfg)
        self.capacity = self.cfg.hbm.capacity_mib << 20
        self.deepest = max(self.cfg.issue.queue_depth, self.cfg.dma.ring_depth)
        self.broken: set[int] = set()  # addresses of words that answer with an error
        self.regions: dict[int, tuple[int, int]] = {}
        self.sinks = [StreamSink(self, f"words__{c}") for c in range(self.clients)]
        self.status = [getattr(dut, f"status__{c}") for c in range(self.clients)]
        self.memory = AxiReadMemory(self, "axi", self.cfg.hbm.port_bytes, self.read)
        self.beats = 0
        dut.load.value = 0
        for c in range(len(Queue)):
            getattr(dut, f"seek__{c}__valid").value = getattr(dut, f"peek__{c}__valid").value = 0
        self.first = [0] * self.clients  # word of its region that was sought last
        self.use(int(self.rng.choice([1, 2])))

    def use(self, part: int) -> None:
        """Of what is built, only the `part`-th part, but two words at least."""
        self.depth = max(2, self.cfg.issue.queue_depth // part)
        self.limit(replace(self.cfg, issue=replace(self.cfg.issue, queue_depth=self.depth)))
        COVERAGE.when(self.depth != self.cfg.issue.queue_depth, "limited")

    async def start(self, *, reset_cycles: int = 2) -> None:
        """As every bench, and count beats."""
        await super().start(reset_cycles=reset_cycles)
        cocotb.start_soon(self._watch())

    async def _watch(self) -> None:
        while True:
            await self.edge
            self.beats += self.dut.beat.value == 1

    def read(self, address: int, count: int) -> bytes:
        """Bytes of HBM."""
        word = address & -WORD_BYTES
        if word in self.broken:
            # one beat of the word is enough, any of them
            beats = WORD_BYTES // self.cfg.hbm.port_bytes
            if (address - word) // self.cfg.hbm.port_bytes == word // WORD_BYTES % beats:
                raise LookupError
        return self.word(word).to_bytes(WORD_BYTES, "little")[address - word :][:count]

    def word(self, address: int) -> int:
        """The word at an address: different bytes everywhere."""
        return int.from_bytes(shake_128(address.to_bytes(8, "little")).digest(WORD_BYTES), "little")

    async def load(self, regions: dict[int, tuple[int, int]]) -> None:
        """Give clients their regions, one a cycle."""
        for client, (base, count) in regions.items():
            self.sinks[client].taken.clear()
            self.regions[client], self.first[client] = (base, count), 0
            self.dut.load.value = 1
            self.dut.load_client.value = client
            self.dut.load_base.value = base
            self.dut.load_count.value = count
            await self.edge
        self.dut.load.value = 0

    def beat(self, address: int) -> int | None:
        """The 32 bits at an address; None if HBM answers their beat with an error."""
        size = self.cfg.hbm.port_bytes
        try:
            data = self.read(address & -size, size)
        except LookupError:
            return None
        return int.from_bytes(data[address % size :][:4], "little")

    async def peek(self, queue: int, number: int) -> tuple[int, bool]:
        """Ask for a word of a register: the word, and whether it failed."""
        port = {name: getattr(self.dut, f"peek__{queue}__{name}") for name in ("valid", "ready", "payload")}
        port["valid"].value, port["payload"].value = 1, number
        while True:
            await self.edge
            if port["ready"].value == 1:
                break
        found = int(self.dut.peeked.value), bool(int(self.dut.peek_failed.value))
        port["valid"].value, port["payload"].value = 0, int(self.rng.integers(1 << 32))
        return found

    async def seek(self, client: int, number: int) -> None:
        """Ask for the words of a client from `number` on, until that is taken."""
        port = {name: getattr(self.dut, f"seek__{client}__{name}") for name in ("valid", "ready", "payload")}
        port["valid"].value, port["payload"].value = 1, number
        before = None
        while True:
            await self.edge
            taken = len(self.sinks[client].taken)
            assert before in (None, taken), "a word is shown while others are sought"
            before = taken
            if port["ready"].value == 1:
                break
        port["valid"].value = 0
        port["payload"].value = int(self.rng.integers(1 << 32))
        self.sinks[client].taken.clear()
        self.first[client] = number

    def is_refused(self, base: int, count: int) -> bool:
        """The region is not in HBM."""
        return count > 0 and (base % WORD_BYTES > 0 or base + WORD_BYTES * count > self.capacity or count >> 32 > 0)

    def asked(self, client: int) -> list[int]:
        """Addresses that HBM was asked for."""
        return [address for who, address in self.memory.requests if who == FETCH_ID + client]

    def room(self, client: int) -> int:
        """Words that come though nobody takes one: its part of the RAM and one in front."""
        return (self.depth if client < len(Queue) else self.cfg.dma.ring_depth) + 1

    def cause(self, client: int) -> tuple[int, int, int]:
        """Cause, word number and address that the client shows."""
        status = _STATUS(int(self.status[client].value))
        return status.cause, status.sequence, status.address

    async def settle(self) -> None:
        """Until every client has all its words or its fault, then a little longer."""
        beats = sum(min(n, 200) for _, n in self.regions.values()) * (WORD_BYTES // self.cfg.hbm.port_bytes)
        for _ in range(2000 + 3 * beats):
            await self.edge
            if all(
                len(self.sinks[c].taken) >= n - self.first[c] or self.cause(c)[0] for c, (_, n) in self.regions.items()
            ):
                break
        await self.cycles(20 + self.memory.latency)
        for _ in range(10 * self.deepest):
            if self.dut.idle.value == 1:
                break
            await self.edge

    def check(self) -> None:
        """All words, in order, or the fault that explains why not."""
        for client, (base, count) in self.regions.items():
            got = self.sinks[client].taken
            cause, number, address = self.cause(client)
            words = [base + WORD_BYTES * n for n in range(min(count, 4096))]
            if self.is_refused(base, count):
                assert got == [] and cause == Cause.OUT_OF_RANGE, f"client {client} accepted a region outside HBM"
                assert address == base & ((1 << 40) - 1) and number == 0
                continue
            first = self.first[client]
            bad = next((n for n, w in enumerate(words) if w in self.broken and n >= first), None)
            good = words[first:bad]
            assert got == [self.word(w) for w in good], f"client {client}: {len(got)} words, or wrong ones"
            if bad is None:
                assert cause == Cause.NONE, f"client {client}: fault without reason"
            else:
                assert (cause, number, address) == (Cause.BUS_ERROR, bad, words[bad])
        assert self.dut.idle.value == 1 and self.memory.outstanding == 0
        assert self.beats == self.memory.beats, f"tells {self.beats} beats of {self.memory.beats}"
