"""Fetch: a manager that keeps the rules of AXI and never has more words due than there is room for.

The prover chooses loads, a subordinate and a client. The client gets at most 7 words a load, and another load when it
has had all of them or has stopped with a fault, and nothing is due to it: Run promises that.
The RAM of the words is left out, they are all 0: nothing is said of what words hold; the benches of issue look at that.
"""

import dataclasses

from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Array, Assert, Assume, Cat, Cover, Module, Mux, Signal, Value
from amaranth.lib import wiring

from rtl.base.axi import FETCH_ID, ID_BITS
from rtl.contract.config import HbmConfig, IssueConfig, named
from rtl.contract.isa import INSTRUCTION_BYTES, Queue
from rtl.issue.fetch import Fetch, fetch_clients
from rtl.issue.fetch_client import FetchClient
from verif.formal.axi_rules import AxiRules
from verif.formal.free import NoRam, StandIn, drive
from verif.formal.proof import Proof, without_reset

__all__ = ["PROOFS", "FetchProof"]

_TINY = named("tiny")
_CFG = dataclasses.replace(
    _TINY,
    hbm=HbmConfig(ports=1, port_bytes=64, bytes_per_cycle=64, latency_ns=25, capacity_mib=1),
    issue=IssueConfig(queue_depth=2, semaphores=16),
    dma=dataclasses.replace(_TINY.dma, rings=1, ring_depth=2),
)
_BEATS = 2
_MOST = 7  # words of a load


class FetchProof(wiring.Component):
    """Six clients with room for two words, of two beats each, of which a limit may leave one to the queues; queues ask
    for words of registers at any time."""

    def __init__(self):
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        fetch = Fetch(_CFG)
        n = fetch_clients(_CFG)
        clients: list[FetchClient] = []

        def client_of(depth: int, beats: int, front: str) -> FetchClient:
            clients.append(FetchClient(depth, beats, front))
            return clients[-1]

        m.submodules.fetch = StandIn(fetch, Ram=NoRam, FetchClient=client_of).elaborate(platform)
        without_reset(m)
        limit = Signal(range(_CFG.issue.queue_depth + 1))
        m.d.comb += [
            limit.eq(AnyConst(len(limit))),
            Assume((limit != 0) & (limit <= _CFG.issue.queue_depth)),
            fetch.limit_queue_depth.eq(limit),
        ]
        client = Signal(range(n))
        followed = Signal(ID_BITS)
        most = Signal.like(limit)  # words that the client may have unread
        m.d.comb += [client.eq(AnyConst(len(client))), Assume(client < n), followed.eq(FETCH_ID + client)]
        m.d.comb += most.eq(Mux(client < len(Queue), limit, _CFG.dma.ring_depth))
        m.submodules.axi = axi = AxiRules(fetch.axi, _CFG.hbm.port_bytes, followed)
        axi.free(m)
        for port in (fetch.load, fetch.load_client, fetch.load_base, fetch.load_count):
            drive(m, port)
        for words in fetch.words:
            m.d.comb += words.ready.eq(AnySeq(1))
        for peek in fetch.peek:
            drive(m, peek.valid)
            drive(m, peek.payload)

        # the subordinate: a burst's beats have their id, the last one is marked; bursts of one id come in order
        beat = Signal(range(_BEATS))
        rid, mine = fetch.axi.rid, Signal()
        answers = fetch.axi.rvalid & fetch.axi.rready
        m.d.comb += [
            mine.eq(fetch.axi.rvalid & (rid == followed)),
            Assume(~mine | (fetch.axi.rlast == (beat == _BEATS - 1))),
            Assume(~fetch.axi.rvalid | ((rid >= FETCH_ID) & (rid <= FETCH_ID + n))),
            Assert(fetch.axi.rready),
        ]
        with m.If(mine & answers):
            m.d.sync += beat.eq(Mux(fetch.axi.rlast, 0, beat + 1))

        # words of the client chosen that were asked for and not taken
        held = Signal(4)
        left = Signal(3)  # words to ask for
        load, asked, taken = Signal(), Signal(), Signal()
        stopped = Array(status.cause != 0 for status in fetch.status)[client]
        waits = fetch.axi.arvalid & (fetch.axi.arid == followed)
        m.d.comb += [
            load.eq(fetch.load & (fetch.load_client == client)),
            Assume(~load | ((axi.reads_due == 0) & ~waits & ((left == 0) | stopped) & (fetch.load_count <= _MOST))),
            Assume(~fetch.load | (fetch.load_client < n)),
            asked.eq(waits & ~axi.offers["ar"].waits),
            taken.eq(Cat(words.valid & words.ready for words in fetch.words).bit_select(client, 1)),
        ]
        m.d.sync += held.eq(Mux(load, 0, held + asked - taken))
        with m.If(load):
            m.d.sync += left.eq(fetch.load_count)
        with m.Elif(asked & (left != 0)):
            m.d.sync += left.eq(left - 1)
        m.d.comb += [
            Assert(held + asked <= most + 1),
            Assert(axi.reads_due + waits <= held + asked),
            Cover((held == _CFG.issue.queue_depth + 1) & ~waits & (axi.reads_due == 1)),
            Cover(taken & (axi.reads_due == 1) & (client == 0)),
            Cover(axi.offers["ar"].waits & fetch.axi.arready & (fetch.axi.arid == FETCH_ID + 5)),
        ]
        self.invariants(m, clients, client, axi.reads_due + waits, held + asked, left - asked)
        return m

    def invariants(
        self, m: Module, clients: list[FetchClient], client: Signal, due: Value, held: Value, left: Value
    ) -> None:
        """What the induction must know: addresses are those of words; what was asked for is in one of four places."""
        for part in clients:
            m.d.comb += Assert((part.left == 0) | (part.request_address % INSTRUCTION_BYTES == 0))
        for c, part in enumerate(clients):
            here = part.stored + part.reading + part.full
            with m.If(client == c):
                m.d.comb += [Assert(~(part.reading & part.full)), Assert(held >= due + here)]
                with m.If(part.broken == 0):
                    m.d.comb += [
                        Assert(held == due + here),
                        Assert(
                            (part.room + due + part.stored == part.limit)
                            | ((part.left == 0) & (due + part.stored == 0))  # before its first load
                        ),
                        Assert(part.left == left),
                    ]


PROOFS = (
    Proof(
        name="axi_fetch",
        make=FetchProof,
        depth=3,
        cover_depth=14,
        fault_depth=12,
        faults=(
            "asks for more words than there is room",
            "the HBM region is not checked",
            "an answer goes to the client that asked last",
            "a queue reads ahead as far as is built",
        ),
    ),
)
