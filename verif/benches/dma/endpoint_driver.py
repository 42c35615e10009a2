"""Packets, memory and link around an endpoint, and what it must do with them."""

from typing import Any

import numpy as np
from cocotb.utils import get_sim_time

from rtl.contract.config import load
from rtl.contract.config_sections import DMA_CLASSES
from rtl.contract.descriptor import DmaAdd
from rtl.contract.link import PacketOpcode
from rtl.contract.memmap import Space
from verif.agents.axi import HbmAgent
from verif.agents.bench import Bench
from verif.agents.dma_host import DmaHost
from verif.agents.mover_ports import MoverPorts
from verif.agents.packets import PacketSink, PacketSource
from verif.agents.stall import STYLES, styled
from verif.bench import Run
from verif.benches.dma.requests import CORE
from verif.checks.coverage import Coverage
from verif.golden.endpoint import Packet, Peer

__all__ = ["COVERAGE", "ERRORS", "EndpointBench", "FEWER", "OTHER_LINKS", "OUTBOUND"]

FEWER = load("tiny", ["sbuf.adders=false", "dma.classes=1", "fabric.endpoint_bits=gen1"])
"""Of what there may be less, and another map of endpoints."""

OTHER_LINKS = tuple(
    Run("dma", options={"link": True}, config=load("tiny", settings), seeds=(1,), regress=True)
    for settings in (["dma.link_movers=1"], ["dma.link_movers=4", "hbm.ports=2"])
)
"""Of fewer movers, and of more at two ports of HBM."""

COVERAGE = Coverage(
    "endpoint",
    [
        *(f"{o.name} {s.name}" for o in list(PacketOpcode)[:4] for s in (Space.HBM, Space.SBUF)),
        *(f"WRITE adds {add.name}" for add in DmaAdd if add),
        "SIGNAL",
        "signal with its write",
        "signal across two beats",
        "refused write",
        "refused read",
        "read of what was just written",
        "signal waits for HBM",
        "several classes at once",
        "another endpoint",
        "longest packet",
    ],
)
ERRORS = Coverage("endpoint errors", ["failed class", "failed class forgotten", "error in the cycle of a clear"])
OUTBOUND = Coverage(
    "endpoint outbound",
    [
        "write",
        "read",
        "inside",
        "several packets",
        "signal there",
        "signal there across two beats",
        "signal here",
        "error response",
        "link lost",
        "answer to another endpoint",
        "from SBUF",
        "from HBM",
        *(f"adds {add.name}" for add in DmaAdd if add),
    ],
)


class EndpointBench(Bench):
    """A DMA with a link; the memories behind it, and the same memories as the golden core leaves them."""

    def __init__(self, dut: Any, *, stalls: str | None = None, commit: int | None = None):
        super().__init__(dut)
        self.latency = commit
        cfg = self.cfg
        self.hbm = self.rng.integers(0, 256, cfg.hbm.capacity_mib << 20, np.uint8)
        self.sbuf = self.rng.integers(0, 256, (cfg.partitions, cfg.sbuf.partition_bytes), np.uint8)
        self.style = stalls
        self.golden = Peer(cfg, CORE, self.hbm.copy(), self.sbuf.copy())
        self.host = DmaHost(self, self.stall)
        self.host.on_signal = self._signalled
        number = self.golden.number
        assert number is not None
        dut.core_id.value = CORE
        self.ports = MoverPorts(self, self.sbuf, self.stall, lambda: max(0, int(self.rng.integers(-90, 30))))
        prefixes = tuple(f"axi__{n}" for n in range(cfg.hbm.ports))
        self.agent = HbmAgent(
            self,
            self.hbm,
            prefixes=prefixes,
            port_bytes=cfg.hbm.port_bytes,
            commit=self._commit,
            stall=self.stall(),
        )
        self.requests_in = PacketSource(self, "request_in", self.stall(), endpoint=number)
        self.responses_in = PacketSource(self, "response_in", self.stall(), endpoint=number)
        self.request_sink = PacketSink(self, "request_out", self._request, self.stall())
        self.response_sink = PacketSink(self, "response_out", self._response, self.stall())
        self.expected: dict[int, tuple[int, int, Packet]] = {}
        self.signals: dict[int, tuple[int, int, list[tuple[int, bytes]]]] = {}
        self.far: Peer | None = None
        self.request_class = 0  # of the packet that far_checks are asked about
        self.left = [0] * DMA_CLASSES  # requests, by class
        self.mute: list[tuple[int, Packet]] | None = None  # answers kept back
        dut.down.value = 0
        dut.request_room.value = (1 << DMA_CLASSES) - 1
        self.far_checks: list[Any] = []
        self.written: list[int] = []  # addresses of the WRITEs that left, in order

    def stall(self) -> Any:
        """A generator of stalls of some style."""
        return styled(self.style or str(self.rng.choice(STYLES)), self.rng)

    def _commit(self) -> int:
        if self.latency is not None:
            return self.latency
        return int(self.rng.integers(1, 501)) if self.rng.random() < 0.5 else int(self.rng.integers(1, 30))

    def _signalled(self, entry: tuple[int, int, int]) -> None:
        """All writes before it, of its class, must be in memory."""
        index, update, value = entry
        assert value in self.signals, f"a signal that nobody sent, or twice: {entry}"
        want_index, want_update, before = self.signals.pop(value)
        assert (index, update) == (want_index, want_update), f"{entry}"
        actual = Peer(self.cfg, CORE, self.hbm, self.sbuf)
        for at, data in before:
            got = actual.window(at, len(data)).tobytes()
            assert got == data, f"signal {value} before its write to {at:#x} of {len(data)} bytes"

    def _response(self, class_: int, endpoint: int, packet: Packet) -> None:
        tag = packet.header["tag"]
        assert tag in self.expected, f"an answer that nobody waits for: {packet.header}"
        want_class, source, want = self.expected.pop(tag)
        assert (class_, endpoint) == (want_class, source)
        assert packet.beats() == want.beats(), f"{packet} instead of {want}"

    def _request(self, class_: int, endpoint: int, packet: Packet) -> None:
        """A request to the far core: executed at once, answered later."""
        assert self.far is not None and endpoint == self.far.number, f"endpoint {endpoint} of {packet.header}"
        assert packet.header["source"] == self.golden.number, f"source of {packet.header}"
        OUTBOUND.when(packet.signal is not None, "signal there")
        if packet.header["opcode"] == PacketOpcode.WRITE:
            self.written.append(packet.header["address"])
        self.request_class = class_
        self.left[class_] += 1
        answer = self.far.execute(packet)
        if packet.signal is not None:
            for inspect in self.far_checks:
                inspect(packet.signal["value"])
        if answer is None:
            return
        if self.mute is None:
            self.responses_in.send(class_, answer)
        else:
            self.mute.append((class_, answer))

    async def rooms(self) -> None:
        """Take the room of classes away, and give it back, at random."""
        while True:
            self.dut.request_room.value = int(self.rng.integers(1 << DMA_CLASSES))
            await self.cycles(int(self.rng.integers(1, 200)))

    @property
    def now(self) -> int:
        """Cycles of the clock so far."""
        return int(get_sim_time("ns")) // 2

    async def quiet(self) -> None:
        """Wait until all requests have been executed; at most 15,000 cycles from one answer to the next."""
        await self.requests_in.stream.drained()
        left = waited = 0
        while waited < 15_000:
            waited = waited + 5 if len(self.expected) == left else 0
            left = len(self.expected)
            await self.cycles(5)
            if self.dut.active.value == 0 and not self.expected:
                return
        raise AssertionError(f"no end: {len(self.expected)} answers, {len(self.signals)} signals are missing")

    def same(self) -> None:
        """The memories are what the golden core left."""
        for name, got, want in (("HBM", self.hbm, self.golden.hbm), ("SBUF", self.sbuf, self.golden.sbuf)):
            wrong = np.argwhere(got != want)
            assert not len(wrong), f"{name}: {len(wrong)} bytes differ, first at {wrong[0]}"
