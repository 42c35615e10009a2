"""Brings instructions and descriptors from HBM, ahead of who needs them."""

from collections.abc import Sequence

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.base.arbiter import RoundRobin
from rtl.base.axi import ADDRESS_BITS, FAST_ID, FETCH_ID, URGENT_QOS, AxiReadSignature, axi_size
from rtl.base.dispatch import SEQUENCE_BITS
from rtl.base.dma_port import CAUSE_BITS, COUNT_BITS, PEEK_BITS
from rtl.base.fault import fault
from rtl.base.limits import limit_ports
from rtl.base.ram import Ram
from rtl.contract.config import Config
from rtl.contract.isa import INSTRUCTION_BYTES, Queue
from rtl.issue.fetch_client import FetchClient

__all__ = ["FETCH_STATUS", "Fetch", "fetch_clients"]

FETCH_STATUS = data.StructLayout({"cause": CAUSE_BITS, "sequence": SEQUENCE_BITS, "address": 64})
"""Why no further word comes, once all before it are taken: BUS_ERROR or OUT_OF_RANGE, the number of the
word that is missing, its address. All 0 otherwise."""

_INCR = 1


def fetch_clients(cfg: Config) -> int:
    """Queues first, then DMA rings."""
    return len(Queue) + cfg.dma.rings


def _starts(depths: list[int]) -> list[int]:
    """First row of each client's part of the RAM: deep ones first, so that each is a multiple of its depth."""
    starts = dict.fromkeys(range(len(depths)), 0)
    at = 0
    for c in sorted(starts, key=lambda c: -depths[c]):
        starts[c] = at
        at += depths[c]
    return list(starts.values())


class Fetch(wiring.Component):
    """One AXI read manager for all queues and rings; client c reads with the id FETCH_ID + c.

    `load` gives client `load_client` its region (base in bytes, count in words of 128 bytes), one client
    a cycle; it asks for its first words at once. A client's words wait in its part of one RAM
    (queues: `limit_queue_depth` words of issue.queue_depth; rings: dma.ring_depth) and one more in front of `words`.
    Timing: a request leaves 2 cycles after its load at the earliest; a word is in front 3 cycles after
    its last beat. All clients together read a word a cycle; one client alone a word in 2 cycles.
    The word in front of client c is in the clock domain `fronts`[c] if that names one; the domain must run
    in cycles with `arrives`[c].
    `seek[q]`: the words of queue q go on with this number of its region; see FetchClient.
    `peek[q]`: queue q asks for a word of 32 bits by its number; with `ready` it is `peeked`, or HBM has answered with
    an error (`peek_failed`). One is due at a time; a request leaves 2 cycles after it came at the earliest.
    A region outside HBM is refused, one without words is not looked at. `idle`: no answer is due.
    """

    def __init__(self, cfg: Config, fronts: Sequence[str] = ()):
        self.cfg = cfg
        n = fetch_clients(cfg)
        self.fronts = (*fronts, *("sync",) * (n - len(fronts)))
        if n >= FAST_ID - FETCH_ID:
            raise ValueError(
                f"{n} fetch clients and one for registers do not fit in the ids from {FETCH_ID} to {FAST_ID - 1}"
            )
        super().__init__(
            {
                **limit_ports(cfg, "queue_depth"),
                "axi": Out(AxiReadSignature(cfg.hbm.port_bytes)),
                "load": In(1),
                "load_client": In(range(n)),
                "load_base": In(64),
                "load_count": In(64),
                "words": Out(stream.Signature(1024)).array(n),
                "seek": In(stream.Signature(COUNT_BITS)).array(len(Queue)),
                "peek": In(stream.Signature(PEEK_BITS)).array(len(Queue)),
                "peeked": Out(32),
                "peek_failed": Out(1),
                "status": Out(FETCH_STATUS).array(n),
                "arrives": Out(n),  # a word comes to the front at the end of this cycle
                "idle": Out(1),
                "beat": Out(1),  # a beat came from HBM
            }
        )

    def _outside(self) -> Value:
        """Whether the region of the load is not in HBM."""
        words = self.cfg.hbm.capacity_mib * (1 << 20) // INSTRUCTION_BYTES
        first = self.load_base >> ceil_log2(INSTRUCTION_BYTES)
        ragged = (self.load_base % INSTRUCTION_BYTES) != 0
        beyond = ((first + self.load_count) > words) | (self.load_count >> COUNT_BITS != 0)
        return (self.load_count != 0) & (ragged | beyond) & ~fault("the HBM region is not checked")

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        n = fetch_clients(cfg)
        port_bits = 8 * cfg.hbm.port_bytes
        beats = max(1, 1024 // port_bits)
        depths = [cfg.issue.queue_depth if c < len(Queue) else cfg.dma.ring_depth for c in range(n)]
        clients = [FetchClient(depth, beats, front) for depth, front in zip(depths, self.fronts, strict=True)]
        starts = _starts(depths)
        for c, client in enumerate(clients):
            m.submodules[f"client_{c}"] = client
        m.submodules.ram = ram = Ram(1024, sum(depths), granule=port_bits)
        m.submodules.ask = ask = RoundRobin(n + 1)  # the last one asks for words of registers
        m.submodules.show = show = RoundRobin(n)
        axi = self.axi

        refuse = Signal()
        m.d.comb += refuse.eq(self._outside())
        for c, client in enumerate(clients):
            m.d.comb += [
                client.limit.eq(self.limit_queue_depth[: len(client.limit)] if c < len(Queue) else client.depth),
                client.load.eq(self.load & (self.load_client == c)),
                client.base.eq(self.load_base[: len(client.base)]),
                client.count.eq(self.load_count[: len(client.count)]),
                client.refuse.eq(refuse),
                self.status[c].cause.eq(client.cause),
                self.status[c].sequence.eq(client.sequence),
                self.status[c].address.eq(client.address),
                client.read_data.eq(ram.read_data),
                self.arrives[c].eq(client.reading),
            ]
            wiring.connect(m, client.word, wiring.flipped(self.words[c]))
            if c < len(Queue):
                wiring.connect(m, wiring.flipped(self.seek[c]), client.seek)

        # Requests: a register in front of AXI, so that a request stays until it is accepted.
        free = Signal()
        asking = Signal(n + 1)
        peeks, address = self._peek(m, n, asking[n])
        m.d.comb += [
            free.eq(~axi.arvalid | axi.arready),
            ask.requests.eq(Cat(*(client.request for client in clients), peeks)),
            ask.accept.eq(free),
            asking.eq(Mux(free, ask.grant, 0)),
            Cat(client.granted for client in clients).eq(asking),
            axi.arsize.eq(axi_size(cfg.hbm.port_bytes)),
            axi.arburst.eq(_INCR),
            axi.arqos.eq(URGENT_QOS),
        ]
        with m.If(free):
            m.d.sync += axi.arvalid.eq(asking.any())
            for c, client in enumerate(clients):
                with m.If(asking[c]):
                    m.d.sync += [axi.araddr.eq(client.request_address), axi.arid.eq(FETCH_ID + c)]
            with m.If(asking[n]):
                m.d.sync += [axi.araddr.eq(address), axi.arid.eq(FETCH_ID + n)]
            m.d.sync += axi.arlen.eq(Mux(asking[n], 0, beats - 1))

        # Answers: always taken, there is room for each word that was asked for.
        who = Signal(range(n + 1))
        m.d.comb += [
            axi.rready.eq(1),
            self.beat.eq(axi.rvalid),
            who.eq(Mux(fault("an answer goes to the client that asked last"), axi.arid - FETCH_ID, axi.rid - FETCH_ID)),
            ram.write_en.eq(axi.rvalid & (who != n)),
            ram.write_address.eq(Array([c.slot | start for c, start in zip(clients, starts, strict=True)])[who]),
            ram.write_mask.eq(1 << Array([c.beat for c in clients])[who]),
            ram.write_data.eq(axi.rdata.replicate(beats)),
        ]
        for c, client in enumerate(clients):
            m.d.comb += [
                client.arrive.eq(axi.rvalid & (who == c)),
                client.last.eq(axi.rlast),
                client.error.eq(axi.rresp != 0),
            ]

        # Words to the front, one read of the RAM a cycle.
        m.d.comb += [
            show.requests.eq(Cat(client.read for client in clients)),
            show.accept.eq(1),
            Cat(client.read_granted for client in clients).eq(show.grant),
            ram.read_en.eq(show.grant.any()),
        ]
        for c, client in enumerate(clients):
            with m.If(show.grant[c]):
                m.d.comb += ram.read_address.eq(client.read_slot | starts[c])

        due = Signal(range(sum(depths) + 2))
        m.d.comb += self.idle.eq((due == 0) & ~axi.arvalid)
        asked = axi.arvalid & axi.arready
        answered = axi.rvalid & axi.rlast
        with m.If(asked & ~answered):
            m.d.sync += due.eq(due + 1)
        with m.Elif(answered & ~asked):
            m.d.sync += due.eq(due - 1)
        return m

    def _peek(self, m: Module, client: int, granted: Value) -> tuple[Value, Value]:
        """Words of registers, one after the other: whether one is to be asked for, and the beat in which it lies."""
        axi, size = self.axi, ceil_log2(self.cfg.hbm.port_bytes)
        m.submodules.turn = turn = RoundRobin(len(Queue))
        wanted, due = Signal(), Signal()  # chosen and not asked for; asked for and not there
        whose = Signal(len(Queue))
        place = Signal(ADDRESS_BITS)
        answer = Signal()
        m.d.comb += [
            turn.requests.eq(Cat(peek.valid for peek in self.peek)),
            turn.accept.eq(~wanted & ~due),
            answer.eq(axi.rvalid & (axi.rid == FETCH_ID + client)),
            self.peeked.eq(axi.rdata.word_select(place[2:size], 32)),
            self.peek_failed.eq(axi.rresp != 0),
            Cat(peek.ready for peek in self.peek).eq(Mux(answer, whose, 0)),
        ]
        with m.If(turn.accept & turn.requests.any()):
            m.d.sync += [wanted.eq(1), whose.eq(turn.grant)]
            for q, peek in enumerate(self.peek):
                with m.If(turn.grant[q]):
                    m.d.sync += place.eq(peek.payload << 2)
        with m.If(granted):
            m.d.sync += [wanted.eq(0), due.eq(1)]
        with m.If(answer):
            m.d.sync += due.eq(0)
        return wanted, place & ~(self.cfg.hbm.port_bytes - 1)
