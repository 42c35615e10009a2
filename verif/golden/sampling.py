"""The golden machine for some results only: it runs what leads to them, and leaves there the bits that it always does.

First the program goes by without a number: queues, waits and copies in their order, as without a seed. Then, from the
last item back to the first, an item is kept if it writes a byte that is still asked for; what it reads is asked for
from then on. The kept ones are run in their order.

What a program on the programmable engine reads, writes and waits for is known only by running it: with one, everything
is run at once.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rtl.contract.config import Config
from rtl.contract.descriptor import DESCRIPTOR
from rtl.contract.isa import INSTRUCTION, Opcode, Queue
from rtl.contract.memmap import ADDRESS, Space
from rtl.contract.sequence import SEQUENCE, SEQUENCE_HEADER
from verif.golden import dma
from verif.golden.footprints import SUMS, TABLE, Access, Footprint, descriptor_footprint, instruction_footprint
from verif.golden.lines import Item
from verif.golden.machine import GoldenMachine
from verif.golden.results import RunResult
from verif.golden.tensor_instructions import TensorInstructions
from verif.golden.weight_ways import WeightWays

__all__ = ["TILE_ELEMENTS", "TILE_ROWS", "SampledMachine"]

TILE_ROWS = 128
TILE_ELEMENTS = 512
"""A result tile has at most so many rows of what one copy stores, and elements of each."""
_OPCODE = 0xFF  # of an instruction word
_FENCE = 1 << SEQUENCE_HEADER.offset("fence")  # of one of operations, without which it loads nothing


@dataclass(frozen=True, slots=True)
class _Tile:
    """A part of an output: the same `width` bytes of rows that begin at these bytes of it."""

    output: str
    rows: tuple[int, ...]
    width: int

    def bytes(self) -> NDArray[np.int64]:
        return (np.array(self.rows, np.int64)[:, None] + np.arange(self.width)).reshape(-1)


@dataclass(frozen=True, slots=True)
class _Step:
    """An item that moves numbers, and the loads (places in the order) whose weights it takes."""

    queue: Queue | None
    word: int
    sequence: int
    loads: frozenset[int] = frozenset()

    def fields(self) -> dict[str, int]:
        if self.queue is None:
            return DESCRIPTOR.unpack(self.word)
        return {**INSTRUCTION.unpack(self.word), "sequence": self.sequence % 2**16}

    def footprint(self, partitions: int) -> Footprint:
        if self.queue is None:
            return descriptor_footprint(self.fields())
        return instruction_footprint(self.fields(), self.queue, partitions)


class SampledMachine(GoldenMachine):
    """A golden machine that computes `count` result tiles of its outputs, chosen by `seed`; all of them if there are no
    more. After `run`, `chosen` has for each output the places (flat, ascending) whose bits are right in the result,
    `tiles` their number, and `kept` of `steps` that moved numbers were run."""

    name = "sampled"

    def __init__(self, cfg: Config, count: int, seed: int):
        super().__init__(cfg)
        self._count, self._chooser = count, np.random.default_rng(seed)

    def run(self) -> RunResult:
        """As GoldenMachine.run. A fault that data cause (tags of a sparse operand) is found only in what is run."""
        tensor = self.cfg.tensor
        self._ways = WeightWays(tensor.rows, tensor.cols, tensor.groups)
        self._order: list[_Step] = []
        self.chosen: dict[str, NDArray[np.int64]] = {}
        self.tiles = self.kept = self.steps = 0
        self._whole = any(word & _OPCODE >= Opcode.GP_LOAD for word in self.queues[Queue.GPSIMD].words)
        # What a queue loads may be what the run has worked out.
        self._whole |= any(word & _OPCODE == SEQUENCE and word & _FENCE for q in self.queues for word in q.words)
        passed = super().run()
        if passed.faults:
            return passed
        tiles = list(self._result_tiles())
        picked = [tiles[n] for n in self._chooser.permutation(len(tiles))[: self._count]]
        self.tiles, self.steps = len(picked), len(self._order)
        asked = self._asked(picked)
        if self._whole:
            self.kept = self.steps
            return passed
        self._run(self._kept(asked))
        return self.result()

    def advance(self, item: Item) -> None:
        """Note what an item is, in place of letting it read and store."""
        if self._whole:
            super().advance(item)
        else:
            item.state += 1
        if item.state < 2:
            return
        step = _Step(item.queue, item.word, item.sequence)
        if item.queue is not None:
            f = step.fields()
            local = f["opcode"] in (Opcode.DMA_TRIGGER, Opcode.DMA_COPY, Opcode.NOP)
            if local and not self._whole:
                item.commit(None)
            if local:
                return
            if item.queue == Queue.TENSOR:
                step = _Step(item.queue, item.word, item.sequence, self._ways.needs(len(self._order), f))
        self._order.append(step)

    def _result_tiles(self) -> Iterator[_Tile]:
        """Parts of the outputs as copies store them."""
        for step in self._order:
            if step.queue is not None:
                continue
            d = step.fields()
            if ADDRESS.unpack(d["destination"])["space"] != Space.HBM:
                continue
            rows, size = list(dict.fromkeys(dma.row_addresses(d, "destination"))), d["row_bytes"]
            for name, region in self.image.outputs.items():
                element = np.dtype(region.dtype).itemsize
                end = region.offset + int(np.prod(region.shape)) * element
                mine = [at - region.offset for at in rows if region.offset <= at < end]
                for first in range(0, len(mine), TILE_ROWS):
                    for begin in range(0, size, TILE_ELEMENTS * element):
                        some = tuple(at + begin for at in mine[first : first + TILE_ROWS])
                        yield _Tile(name, some, min(size - begin, TILE_ELEMENTS * element))

    def _asked(self, tiles: list[_Tile]) -> Mapping[str, NDArray[np.bool_]]:
        """A flag for each byte of the memories and each state of an engine; those of the tiles are set."""
        lanes = (self.cfg.partitions, 1)
        asked = {
            "hbm": np.zeros((1, len(self.hbm)), np.bool_),
            "sbuf": np.zeros(self.sbuf.bytes.shape, np.bool_),
            "psum": np.zeros(self.psum.bytes.shape, np.bool_),
            TABLE: np.zeros((1, 1), np.bool_),
            **{name: np.zeros(lanes, np.bool_) for name in SUMS.values()},
        }
        for name, region in self.image.outputs.items():
            places = np.concatenate([np.zeros(0, np.int64), *(t.bytes() for t in tiles if t.output == name)])
            asked["hbm"][0, region.offset + places] = True
            self.chosen[name] = np.unique(places // np.dtype(region.dtype).itemsize)
        return asked

    def _kept(self, asked: Mapping[str, NDArray[np.bool_]]) -> NDArray[np.bool_]:
        """Which steps lead to what is asked for."""

        def part(access: Access) -> Any:
            return asked[access.memory][access.rows], (slice(None), access.at)

        kept = np.zeros(len(self._order), np.bool_)
        for number in range(len(self._order) - 1, -1, -1):
            step = self._order[number]
            found = step.footprint(self.cfg.partitions)
            for access in found.writes:
                rows, at = part(access)
                kept[number] |= rows[at].any()
            if not kept[number]:
                continue
            kept[list(step.loads)] = True
            for accesses, flag in ((found.writes if found.surely else (), False), (found.reads, True)):
                for access in accesses:
                    rows, at = part(access)
                    rows[at] = flag
        return kept

    def _run(self, kept: NDArray[np.bool_]) -> None:
        self.kept = int(kept.sum())
        tensor = self.engines[Queue.TENSOR]
        assert isinstance(tensor, TensorInstructions)
        for step, runs in zip(self._order, kept, strict=True):
            f = step.fields() if runs or step.queue == Queue.TENSOR else {}
            if runs and step.queue is None:
                dma.copy(f, self.hbm, self.sbuf.bytes)
            elif runs and step.queue is not None:
                read, commit = self.action(f, step.queue)
                commit(read())
            elif step.queue == Queue.TENSOR:
                tensor.skip(f)
