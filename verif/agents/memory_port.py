"""SBUF and PSUM as an engine sees them: answers one cycle later, refuses at random, shows random bits between.

All ports of a bench are served in one place and in one order: reads, then writes, as the memories
promise (a read accepted in the cycle of a write sees the old bytes).
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from rtl.base.memory_port import QUADRANTS, psum_element_bits, psum_word_bits, sbuf_word_bits
from rtl.contract.timing import PSUM_ADD_CYCLES
from verif.agents.bench import Bench
from verif.agents.stall import never
from verif.golden.memory import Memory
from verif.golden.rounding import to_bf16

__all__ = ["MemoryPorts", "add_fp32"]


def add_fp32(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Codes of old + new, NaN canonical."""
    with np.errstate(all="ignore"):
        total = old.view(np.float32) + new.view(np.float32)
    return np.where(np.isnan(total), np.uint32(0x7FC00000), total.view(np.uint32))


class MemoryPorts:
    """The memories `sbuf` and `psum` behind the ports that are added to it.

    `cycle` counts root cycles; `grants` counts by port name; `refusals` too. `on_cycle` callbacks are
    called once a cycle with its number, after the ports have been served.
    """

    def __init__(self, bench: Bench, sbuf: Memory, psum: Memory):
        self.bench = bench
        self.cfg = bench.cfg
        self.dut = bench.dut
        self.sbuf = sbuf
        self.psum = psum
        self.cycle = 0
        self.grants: dict[str, int] = {}
        self.refusals: dict[str, int] = {}
        self.committed: list[int] = []  # cycle of each PSUM row's commit
        self.rows: dict[str, int] = {}  # that have committed, by port
        self.written: list[int] = []  # cycle of each write of an engine
        self.on_cycle: list[Callable[[int], None]] = []
        self._reads: list[Callable[[], None]] = []
        self._writes: list[Callable[[], None]] = []
        self._commits: deque[tuple[int, str, int, bool, np.ndarray, np.ndarray, int, int]] = deque()

    def start(self) -> None:
        """Serve from now on; call after all ports were added."""
        cocotb.start_soon(self._serve())

    async def _serve(self) -> None:
        edge = RisingEdge(self.bench.clk)
        while True:
            await edge
            for port in self._reads:
                port()
            for port in self._writes:
                port()
            for hear in self.on_cycle:
                hear(self.cycle)
            self.cycle += 1

    def _signals(self, name: str, *members: str) -> list[Any]:
        self.grants[name] = 0
        self.refusals[name] = 0
        return [getattr(self.dut, f"{name}__{member}") for member in members]

    def _handshake(self, name: str, valid: Any, ready: Any, state: dict[str, bool], stall: Iterator[bool]) -> bool:
        """Whether a request was accepted in the cycle that ends now; chooses ready for the next one."""
        asked = valid.value == 1
        granted = asked and state["ready"]
        if granted:
            self.grants[name] += 1
        elif asked:
            self.refusals[name] += 1
        willing = not next(stall)
        if willing != state["ready"]:
            ready.value = int(willing)
            state["ready"] = willing
        return granted

    def add_sbuf_read(self, name: str, stall: Iterator[bool] | None = None) -> None:
        """A SbufReadSignature of the DUT."""
        valid, ready, quadrants, word, data, data_valid = self._signals(
            name, "valid", "ready", "quadrants", "word", "data", "data_valid"
        )
        stalls = stall or never()
        state = {"ready": False, "valid": True}
        ready.value = 0
        width = sbuf_word_bits(self.cfg)
        share = self.cfg.partitions // QUADRANTS
        rng = self.bench.rng

        def serve() -> None:
            if self._handshake(name, valid, ready, state, stalls):
                mask, words = int(quadrants.value), int(word.value)
                assert mask, f"{name} asks for no quadrant"
                row = rng.integers(0, 256, (self.cfg.partitions, 8), dtype=np.uint8)
                for q in range(QUADRANTS):
                    if mask >> q & 1:
                        at = 8 * (words >> (q * width) & ((1 << width) - 1))
                        part = slice(q * share, (q + 1) * share)
                        row[part] = self.sbuf.bytes[part, at : at + 8]
                data.value = int.from_bytes(row.tobytes(), "little")
                data_valid.value = 1
                state["valid"] = True
            elif state["valid"]:
                data.value = int.from_bytes(rng.bytes(8 * self.cfg.partitions), "little")
                data_valid.value = 0
                state["valid"] = False

        self._reads.append(serve)

    def add_psum_read(self, name: str, stall: Iterator[bool] | None = None) -> None:
        """A PsumReadSignature of the DUT."""
        valid, ready, word, data, data_valid = self._signals(name, "valid", "ready", "word", "data", "data_valid")
        assert len(word) == psum_word_bits(self.cfg)
        stalls = stall or never()
        state = {"ready": False, "valid": True}
        ready.value = 0
        rng = self.bench.rng

        def serve() -> None:
            if self._handshake(name, valid, ready, state, stalls):
                at = 8 * int(word.value)
                data.value = int.from_bytes(self.psum.bytes[:, at : at + 8].tobytes(), "little")
                data_valid.value = 1
                state["valid"] = True
            elif state["valid"]:
                data.value = int.from_bytes(rng.bytes(8 * self.cfg.partitions), "little")
                data_valid.value = 0
                state["valid"] = False

        self._reads.append(serve)

    def add_sbuf_write(self, name: str, stall: Iterator[bool] | None = None) -> None:
        """A SbufWriteSignature of the DUT."""
        valid, ready, quadrants, word, data, byte_mask, partitions = self._signals(
            name, "valid", "ready", "quadrants", "word", "data", "bytes", "partitions"
        )
        stalls = stall or never()
        state = {"ready": False}
        ready.value = 0
        width = sbuf_word_bits(self.cfg)
        count = self.cfg.partitions
        share = count // QUADRANTS

        def serve() -> None:
            if not self._handshake(name, valid, ready, state, stalls):
                return
            row = np.frombuffer(int(data.value).to_bytes(8 * count, "little"), np.uint8).reshape(count, 8)
            lanes, taken, mask, words = (int(s.value) for s in (partitions, byte_mask, quadrants, word))
            columns = [b for b in range(8) if taken >> b & 1]
            for p in range(count):
                q = p // share
                if lanes >> p & 1 and mask >> q & 1:
                    at = 8 * (words >> (q * width) & ((1 << width) - 1))
                    self.sbuf.bytes[p, [at + b for b in columns]] = row[p, columns]
            self.written.append(self.cycle)

        self._writes.append(serve)

    def add_psum_write(self, name: str, stall: Iterator[bool] | None = None) -> None:
        """A PsumWriteSignature of the DUT."""
        valid, ready, word, data, byte_mask, partitions = self._signals(
            name, "valid", "ready", "word", "data", "bytes", "partitions"
        )
        stalls = stall or never()
        state = {"ready": False}
        ready.value = 0
        count = self.cfg.partitions

        def serve() -> None:
            if not self._handshake(name, valid, ready, state, stalls):
                return
            row = np.frombuffer(int(data.value).to_bytes(8 * count, "little"), np.uint8).reshape(count, 8)
            lanes, taken, at = int(partitions.value), int(byte_mask.value), 8 * int(word.value)
            assert taken in (0x0F, 0xF0, 0xFF), f"{name} writes bytes {taken:08b} of a word of PSUM"
            columns = [b for b in range(8) if taken >> b & 1]
            for p in range(count):
                if lanes >> p & 1:
                    self.psum.bytes[p, [at + b for b in columns]] = row[p, columns]
            self.written.append(self.cycle)

        self._writes.append(serve)

    def add_psum_transpose(self, name: str) -> None:
        """A PsumTransposeSignature of the DUT: a row of bits, written in its cycle."""
        valid, element, partitions, data = self._signals(name, "valid", "element", "partitions", "data")
        self.rows[name] = 0
        count = self.cfg.partitions

        def serve() -> None:
            if valid.value != 1:
                return
            self.grants[name] += 1
            self.rows[name] += 1
            at, mask = 4 * int(element.value), int(partitions.value)
            lanes = np.array([mask >> p & 1 for p in range(count)], dtype=bool)
            words = np.frombuffer(int(data.value).to_bytes(4 * count, "little"), np.uint8).reshape(count, 4)
            self.psum.bytes[lanes, at : at + 4] = words[lanes]

        self._writes.append(serve)

    def add_psum_accumulate(self, name: str) -> None:
        """A PsumAccumulateSignature of the DUT."""
        valid, element, accumulate, partitions, data, lost, rounding, random = self._signals(
            name, "valid", "element", "accumulate", "partitions", "data", "lost", "rounding", "random"
        )
        lost.value = 0
        self.rows[name] = 0
        count = self.cfg.partitions
        assert len(element) == psum_element_bits(self.cfg)

        def serve() -> None:
            if self._commits and self._commits[0][0] == self.cycle:
                _, of, at, add, lanes, sums, mode, word = self._commits.popleft()
                old = np.ascontiguousarray(self.psum.bytes[:, at : at + 4]).view("<u4")[:, 0]
                total = to_bf16((add_fp32(old, sums) if add else sums)[:, None], mode, [word])[:, 0]
                new = np.where(lanes, total, old).astype("<u4")
                self.psum.bytes[:, at : at + 4] = new[:, None].view(np.uint8)
                self.committed.append(self.cycle)
                self.rows[of] += 1
            if valid.value != 1:
                return
            self.grants[name] += 1
            at = 4 * int(element.value)
            assert all(c[2] != at for c in self._commits), f"PSUM byte {at} is written inside its adder"
            mask = int(partitions.value)
            lanes = np.array([mask >> p & 1 for p in range(count)], dtype=bool)
            sums = np.frombuffer(int(data.value).to_bytes(4 * count, "little"), "<u4").copy()
            mode, word = int(rounding.value), int(random.value)
            due = self.cycle + PSUM_ADD_CYCLES
            self._commits.append((due, name, at, accumulate.value == 1, lanes, sums, mode, word))

        self._writes.append(serve)
