"""SBUF with all its users at once and what it must hold; what its bench drives."""

from collections.abc import Callable

import numpy as np

from rtl.base.memory_port import QUADRANTS, sbuf_word_bits
from rtl.contract.descriptor import DmaAdd
from verif.agents.bench import Bench
from verif.benches.memory.sbuf_ports import (
    COVERAGE,
    PATIENCE_CYCLES,
    READ_PINS,
    READS,
    WRITE_CYCLES,
    WRITES,
    Port,
    Request,
    contents,
)
from verif.benches.memory.sbuf_requests import random_request
from verif.benches.memory.sbuf_sums import Sum, Sums

__all__ = ["started"]


class SbufBench(Bench):
    """Drives all ports at random and checks every output in every cycle."""

    def __init__(self, dut) -> None:
        super().__init__(dut)
        cfg = self.cfg
        self.banks = cfg.sbuf.banks
        self.words = cfg.sbuf.partition_bytes // 8
        self.word_bits = sbuf_word_bits(cfg)
        self.movers = cfg.dma.engines
        self.lanes = cfg.partitions // self.movers
        self.memory = contents(cfg.partitions, cfg.sbuf.partition_bytes)
        self.refused = dut.refused
        self.ports: dict[str, list[Port]] = {
            "read": [Port(dut, f"read_{pins}__", ("quadrants", "word")) for pins in READ_PINS],
            "write": [Port(dut, f"write_{n}__", ("quadrants", "word", "data", "bytes", "partitions")) for n in WRITES],
            "mover_read": [],
            "mover_write": [],
        }
        for e in range(self.movers):
            read, write = f"mover__{e}__read_", f"mover__{e}__write_"
            self.ports["mover_read"].append(Port(dut, read, ("lane", "pair")))
            self.ports["mover_write"].append(Port(dut, write, ("lane", "pair", "data", "bytes", "add", "last")))
        self.done = [getattr(dut, f"mover__{e}__write_done") for e in range(self.movers)]
        self.sums = [Sums() for _ in range(self.movers)]
        self.cycle = 0
        self.adding = 0.0
        self.waited = {way: [0] * self.movers for way in ("read", "write", "add")}
        self.answers = [
            *((getattr(dut, f"read_{pins}__data_valid"), getattr(dut, f"read_{pins}__data")) for pins in READ_PINS),
            *(
                (getattr(dut, f"mover__{e}__read_data_valid"), getattr(dut, f"mover__{e}__read_data"))
                for e in range(self.movers)
            ),
        ]
        self.expected: list[int | None] = [None] * len(self.answers)
        self.masks: list[int] = [0] * len(self.answers)  # bits of the answer that were asked for
        self.counts = np.zeros(len(READS) + len(WRITES) + 3 * self.movers, dtype=int)

    # --- the model -----------------------------------------------------------------------------

    def banks_of(self, request: Request) -> set[tuple[int, int]]:
        """(quadrant, bank) that an engine's request needs."""
        return {(q, request.words[q] % self.banks) for q in range(QUADRANTS) if request.quadrants >> q & 1}

    def pair_of(self, mover: int, request: Request | Sum) -> set[tuple[int, int]]:
        """(quadrant, bank) that a mover's request needs."""
        quadrant = mover * QUADRANTS // self.movers
        even = 2 * request.pair % self.banks
        return {(quadrant, even), (quadrant, even + 1)}

    def asks(self, way: str) -> list[Request | Sum | None]:
        """What each mover's port asks SBUF for: reads; copies that may go, or the sum that is to be written before
        them; the old bytes of sums that may begin.
        """
        if way == "read":
            return [port.request for port in self.ports["mover_read"]]
        asks: list[Request | Sum | None] = []
        for port, sums in zip(self.ports["mover_write"], self.sums, strict=True):
            r = port.request
            free = r is not None and not sums.meets(r.lane, r.pair)
            if way == "write":
                asks.append(sums.head(self.cycle) or (r if free and not r.add else None))
            else:
                asks.append(r if free and r.add and not sums.full else None)
        return asks

    def decide(self, way: str) -> dict[str, list[bool]]:
        """Who is granted: engines, movers, and with reads the sums; also the coverage of it."""
        engines = [port.request for port in self.ports[way]]
        asks = {way: self.asks(way)}
        if way == "read":
            asks["add"] = self.asks("add")
        closed: set[tuple[int, int]] = set()
        urgent: dict[str, list[bool]] = {}
        for kind, requests in asks.items():
            urgent[kind] = [
                r is not None and waited >= PATIENCE_CYCLES
                for r, waited in zip(requests, self.waited[kind], strict=True)
            ]
            for e, request in enumerate(requests):
                if urgent[kind][e]:
                    closed |= self.pair_of(e, request)
        taken: set[tuple[int, int]] = set()
        granted = []
        for n, request in enumerate(engines):
            need = self.banks_of(request) if request is not None else set()
            ok = not need & (taken | closed)
            granted.append(ok)
            if request is None:
                continue
            name = (READS if way == "read" else WRITES)[n]
            if ok:
                COVERAGE.hit(f"{way} {name} granted")
                COVERAGE.when(
                    {q for q, _ in need} & {q for q, _ in taken}, "two ports share a quadrant in different banks"
                )
                taken |= need
            else:
                COVERAGE.hit(f"{way} {name} refused" if n else f"first {way} port refused by an aged mover")
                COVERAGE.when(need - taken - closed, "refused in one quadrant, free in another")
        served = self._movers(way, asks, urgent, taken)
        for kind, requests in asks.items():
            for e, request in enumerate(requests):
                waits = request is not None and not served[kind][e]
                self.waited[kind][e] = self.waited[kind][e] + 1 if waits else 0
                limit = PATIENCE_CYCLES + (kind == "add")
                assert self.waited[kind][e] <= limit, f"the model itself lets a mover wait too long: {kind} {e}"
        return {way: granted, **{f"mover_{kind}": oks for kind, oks in served.items()}}

    def _movers(
        self,
        way: str,
        asks: dict[str, list[Request | Sum | None]],
        urgent: dict[str, list[bool]],
        taken: set[tuple[int, int]],
    ) -> dict[str, list[bool]]:
        """Who of the movers, and of their sums, gets what the engines left."""
        served: dict[str, list[bool]] = {kind: [] for kind in asks}
        for e, request in enumerate(asks[way]):
            need = self.pair_of(e, request) if request is not None else set()
            ok = not need & taken
            if request is not None and need & taken:
                odd = {bank % 2 for _, bank in need & taken}
                COVERAGE.when(0 in odd, "mover waits because of its even bank")
                COVERAGE.when(1 in odd, "mover waits because of its odd bank")
            old = asks["add"][e] if way == "read" else None
            if old is not None:
                wants = self.pair_of(e, old)
                meets = bool(wants & need)
                first = urgent["add"][e] and not urgent[way][e]
                COVERAGE.when(meets and first and ok, "sum's read goes before the mover's read")
                COVERAGE.when(meets and not first and ok, "sum's read waits for the mover's read of its banks")
                ok = ok and not (meets and first)
                served["add"].append(not wants & taken and not (meets and not first))
                COVERAGE.when(need and not meets and ok and served["add"][-1], "sum's read beside the mover's read")
                COVERAGE.when(
                    self.waited["add"][e] >= PATIENCE_CYCLES and served["add"][-1], "sum's read waits to its limit"
                )
            elif way == "read":
                served["add"].append(False)
            served[way].append(ok)
            if request is not None and self.waited[way][e] == PATIENCE_CYCLES and ok:
                COVERAGE.hit(f"mover {way} waits to its limit")
        return served

    def fetch(self, request: Request) -> tuple[int, int]:
        """Answer to an engine's read, and which of its bits count."""
        value = mask = 0
        part = self.cfg.partitions // QUADRANTS
        for q in range(QUADRANTS):
            if request.quadrants >> q & 1:
                at = 8 * request.words[q]
                rows = self.memory.bytes[q * part : (q + 1) * part, at : at + 8]
                value |= int.from_bytes(rows.tobytes(), "little") << 64 * part * q
                mask |= ((1 << 64 * part) - 1) << 64 * part * q
        return value, mask

    def store(self, partition: int, at: int, data: int, enable: int, size: int) -> None:
        """Bytes of `data` at byte `at` of a partition, where `enable` has a bit."""
        new = data.to_bytes(size, "little")
        for b in range(size):
            if enable >> b & 1:
                self.memory.bytes[partition, at + b] = new[b]

    def commit(self, grants: dict[str, list[bool]]) -> None:
        """All writes of the cycle."""
        part = self.cfg.partitions // QUADRANTS
        for port, ok in zip(self.ports["write"], grants["write"], strict=True):
            r = port.request
            if r is None or not ok:
                continue
            COVERAGE.when(r.bytes == 0, "write of no byte")
            for q in range(QUADRANTS):
                if not r.quadrants >> q & 1:
                    continue
                own = r.partitions >> part * q & ((1 << part) - 1)
                COVERAGE.when(0 < own < (1 << part) - 1, "write with partitions masked in a quadrant")
                COVERAGE.when(r.words[q] == self.words - 1, "last word of a partition")
                for p in range(part * q, part * (q + 1)):
                    if r.partitions >> p & 1:
                        self.store(p, 8 * r.words[q], r.data >> 64 * p & (1 << 64) - 1, r.bytes, 8)
        for e, (port, sums) in enumerate(zip(self.ports["mover_write"], self.sums, strict=True)):
            r = port.request
            head = sums.head(self.cycle)
            if r is not None and grants["mover_add"][e]:
                COVERAGE.hit(f"mover adds {DmaAdd(r.add).name}")
                COVERAGE.when(0 < r.bytes < 0xFFFF, "sum of part of a pair")
                row = self.before[e * self.lanes + r.lane, 16 * r.pair : 16 * r.pair + 16]
                where = {"lane": r.lane, "pair": r.pair, "bytes": r.bytes, "last": r.last}
                sums.begin(row, r.data, r.add, self.cycle, **where)
            if head is not None and grants["mover_write"][e]:
                COVERAGE.when(head.due < self.cycle, "sum written late")
                self.store(e * self.lanes + head.lane, 16 * head.pair, head.data, head.bytes, 16)
                sums.under_way.remove(head)
            elif r is not None and not r.add and grants["mover_accept"][e]:
                COVERAGE.when(0 < r.bytes < 0xFFFF, "write of part of a pair")
                self.store(e * self.lanes + r.lane, 16 * r.pair, r.data, r.bytes, 16)

    def accepted(self, grants: dict[str, list[bool]]) -> list[bool]:
        """`ready` of each mover's write port."""
        oks = []
        for e, (port, sums) in enumerate(zip(self.ports["mover_write"], self.sums, strict=True)):
            r, head = port.request, sums.head(self.cycle)
            if r is None:
                oks.append(False)
                continue
            meets = sums.meets(r.lane, r.pair)
            oks.append(grants["mover_add"][e] if r.add else head is None and not meets and grants["mover_write"][e])
            COVERAGE.when(
                meets, f"{'sum' if r.add else 'copy'} waits for {'one' if r.add else 'a sum'} of the same bytes"
            )
            COVERAGE.when(head and not r.add and not meets, "copy waits because a sum is written")
            COVERAGE.when(r.add and not meets and sums.full, "sum waits because all places are taken")
        return oks

    # --- one cycle -----------------------------------------------------------------------------

    async def step(self, choose: Callable[[str, int], Request | None]) -> None:
        """One clock edge: check what was there before it, then ask for more where a port is free."""
        await self.edge
        asks = {way: self.asks(way) for way in ("read", "write", "add")}
        grants = {**self.decide("read"), **self.decide("write")}
        grants["mover_accept"] = self.accepted(grants)
        ready = grants | {"mover_write": grants["mover_accept"]}
        for kind in ("read", "write", "mover_read", "mover_write"):
            for n, (port, ok) in enumerate(zip(self.ports[kind], ready[kind], strict=True)):
                if port.request is not None:
                    assert bool(port.ready.value) == ok, f"{kind} {n}: ready is {port.ready.value}, not {int(ok)}"
        refused: list[bool] = []
        for kind in ("read", "write"):
            refused += [p.request is not None and not ok for p, ok in zip(self.ports[kind], grants[kind], strict=True)]
        for kind in ("read", "write", "add"):
            refused += [r is not None and not ok for r, ok in zip(asks[kind], grants[f"mover_{kind}"], strict=True)]
        seen = int(self.refused.value)
        assert seen == sum(r << n for n, r in enumerate(refused)), f"refused is {seen:b}, not {refused[::-1]}"
        self.counts += refused
        for e, done in enumerate(self.done):
            head = self.sums[e].head(self.cycle)
            want = head is not None and bool(head.last) and grants["mover_write"][e]
            assert bool(done.value) == want, f"mover {e}: write_done is {done.value}, not {int(want)}"
            COVERAGE.when(want, "end of a row of sums")
        COVERAGE.when(all(grants["mover_add"]), "sum of every port in a cycle")

        for n, ((valid, data), value) in enumerate(zip(self.answers, self.expected, strict=True)):
            assert bool(valid.value) == (value is not None), f"answer {n}: data_valid is {valid.value}"
            if value is not None:
                got = int(data.value) & self.masks[n]
                assert got == value, f"answer {n}: {got:x}, not {value:x}"

        self.expect(grants)
        self.cover(grants)
        self.before = self.memory.bytes.copy()
        self.commit(grants)
        self.cycle += 1
        for kind, ports in self.ports.items():
            for n, port in enumerate(ports):
                if kind.startswith("mover") and port.request is not None and not ready[kind][n]:
                    port.request.waited += 1
                    limit = PATIENCE_CYCLES if kind == "mover_read" else WRITE_CYCLES
                    assert port.request.waited <= limit + (kind == "mover_read"), f"{kind} {n} waits too long"
                if port.request is None or ready[kind][n]:
                    port.ask(choose(kind, n), self.word_bits)

    def expect(self, grants: dict[str, list[bool]]) -> None:
        """Answers of the next cycle: the bytes before this cycle's writes."""
        for n, (port, ok) in enumerate(zip(self.ports["read"], grants["read"], strict=True)):
            self.expected[n] = None
            if port.request is not None and ok:
                self.expected[n], self.masks[n] = self.fetch(port.request)
        for e, (port, ok) in enumerate(zip(self.ports["mover_read"], grants["mover_read"], strict=True)):
            self.expected[len(READS) + e] = None
            r = port.request
            if r is not None and ok:
                row = self.memory.bytes[e * self.lanes + r.lane, 16 * r.pair : 16 * r.pair + 16]
                self.expected[len(READS) + e] = int.from_bytes(row.tobytes(), "little")
                self.masks[len(READS) + e] = (1 << 128) - 1

    def cover(self, grants: dict[str, list[bool]]) -> None:
        """Things that need both directions."""
        busy = all(
            port.request is not None and ok
            for kind in ("mover_read", "mover_write")
            for port, ok in zip(self.ports[kind], grants[kind], strict=True)
        )
        COVERAGE.when(busy, "all movers read and write in a cycle")
        read = self.ports["read"][0].request
        for port, ok in zip(self.ports["write"], grants["write"], strict=True):
            w = port.request
            if read is not None and w is not None and ok and grants["read"][0]:
                same = [
                    q for q in range(QUADRANTS) if read.quadrants & w.quadrants & 1 << q and read.words[q] == w.words[q]
                ]
                COVERAGE.when(same and w.bytes and w.partitions, "word read and written in the same cycle")

    # --- stimulus ------------------------------------------------------------------------------

    async def run(self, cycles: int, shares: dict[str, float], hot: int = 16, adding: float = 0.3) -> None:
        """Random requests: a free port of a kind asks again with the probability of its kind; `adding`: share of a
        mover's writes, if there are adders.
        """

        def choose(kind: str, n: int) -> Request | None:
            share = shares.get(f"{kind} {n}", shares.get(kind, 0.0))
            return random_request(self.rng, self.cfg, kind, hot, self.adding) if self.rng.random() < share else None

        self.adding = adding if self.cfg.sbuf.adders else 0.0
        for _ in range(cycles):
            await self.step(choose)
        for _ in range(40):
            await self.step(lambda kind, n: None)


async def started(dut) -> SbufBench:
    bench = SbufBench(dut)
    await bench.start()
    return bench
