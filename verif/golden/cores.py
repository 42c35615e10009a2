"""Golden machines that reach each other: programs of several cores with copies between them, without time.

A copy to another core leaves as one parcel, which carries its signal if that goes there too; the signal of a copy
inside to another core is a parcel by itself. Parcels of one sender, receiver and class arrive in their order; with a
seed they arrive at any time, without one at once. A copy from another core is served behind all parcels of its class
that were sent there before. Semaphores of all cores are 0 before the first program runs, and stay when others start:
CLEAR of all, then RUN = 3 of each. What lies in no core of the set is refused as the partner of a link refuses it: a
write is dropped with its signal, a read halts its ring with BUS_ERROR.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rtl.contract.config import Config
from rtl.contract.descriptor import DESCRIPTOR
from rtl.contract.isa import Cause
from rtl.contract.memmap import CoreId, core_place
from verif.golden import dma
from verif.golden.copies import Memories, local_copy
from verif.golden.lines import Item
from verif.golden.machine import DeadlockError, GoldenMachine
from verif.golden.results import ImageLike, RunResult

__all__ = ["GoldenCores"]

_Way = tuple[int, int, int]
"""Sender, receiver, class."""


class GoldenCores:
    """A machine for each core id, joined. `load` images by core id, `run`; `machines` can be read like any other."""

    def __init__(self, cfg: Config, cores: Iterable[int], seed: int | None = None):
        self.rng = None if seed is None else np.random.default_rng(seed)
        self.machines = {core: GoldenMachine(cfg, core_id=core, copies=self) for core in cores}
        for machine in self.machines.values():
            machine.rng = self.rng
        self._parcels: dict[_Way, deque[Callable[[], None]]] = {}

    def load(self, images: Mapping[int, ImageLike]) -> None:
        """An image for each core."""
        for core, machine in self.machines.items():
            machine.load(images[core])

    def run(self) -> dict[int, RunResult]:
        """Execute until all cores are done or halted and all parcels have arrived. DeadlockError if they stop before,
        without a fault."""
        while events := self._events():
            events[0 if self.rng is None else int(self.rng.integers(len(events)))]()
        stuck = {core: machine.stuck() for core, machine in self.machines.items() if machine.stuck()}
        if stuck and not any(machine.faults for machine in self.machines.values()):
            raise DeadlockError("; ".join(f"core {core_place(core)}: {text}" for core, text in stuck.items()))
        return {core: machine.result() for core, machine in self.machines.items()}

    def start(self, machine: Memories, word: int) -> tuple[Cause, int, Item | None]:
        """See copies.Copies."""
        d = DESCRIPTOR.unpack(word)
        cause, address = dma.check(d, machine.cfg, machine.core_id, link=True)
        if cause:
            return cause, address, None
        source, destination, signal = (d[name] >> CoreId.LSB for name in ("source", "destination", "signal_address"))
        here = machine.core_id
        if source == destination == here:
            inside = local_copy(machine, d)
            return Cause.NONE, 0, inside if signal == here or not d["signal_update"] else self._tell(machine, inside, d)
        if destination == here:
            if source not in self.machines:
                return Cause.BUS_ERROR, d["source"], None
            far = self.machines[source]
            far.grow(dma.hbm_end(d, "source"))
            machine.grow(dma.hbm_end(d, "destination"))
            return Cause.NONE, 0, self._read(machine, far, d)
        machine.grow(dma.hbm_end(d, "source"))
        return Cause.NONE, 0, self._write(machine, self.machines.get(destination), d, signals=signal != here)

    def _tell(self, machine: Memories, copy: Item, d: dict[str, int]) -> Item:
        """A copy inside with a signal elsewhere: a parcel of nothing else, when it has ended."""
        there = d["signal_address"] >> CoreId.LSB

        def leave() -> None:
            def arrive() -> None:
                if there in self.machines:
                    self.machines[there].update(*dma.signal(d))

            self._parcels.setdefault((machine.core_id, there, d["class_"]), deque()).append(arrive)

        return replace(copy, signal=None, ended=leave)

    def _read(self, machine: Memories, far: GoldenMachine, d: dict[str, int]) -> Item:
        def read() -> list[NDArray[np.uint8]]:
            before = self._parcels.get((machine.core_id, far.core_id, d["class_"]), deque())
            while before:
                before.popleft()()
            return dma.gather(d, far.hbm, far.sbuf.bytes)

        return Item(read, lambda rows: dma.scatter(d, rows, machine.hbm, machine.sbuf.bytes), dma.signal(d))

    def _write(self, machine: Memories, far: GoldenMachine | None, d: dict[str, int], *, signals: bool) -> Item:
        def send(rows: list[NDArray[np.uint8]]) -> None:
            def arrive() -> None:
                if far is None:
                    return
                far.grow(dma.hbm_end(d, "destination"))
                dma.scatter(d, rows, far.hbm, far.sbuf.bytes)
                if signals:
                    far.update(*dma.signal(d))

            way = machine.core_id, d["destination"] >> CoreId.LSB, d["class_"]
            self._parcels.setdefault(way, deque()).append(arrive)

        own = None if signals else dma.signal(d)
        way = d["destination"] >> CoreId.LSB, d["class_"]
        return Item(lambda: dma.gather(d, machine.hbm, machine.sbuf.bytes), send, own, way=way, follows=bool(d["add"]))

    def _events(self) -> list[Callable[[], None]]:
        """Parcels that may arrive, then what each machine may do next; without a seed the first of these, then slices
        of all programmable engines. Their watchdogs come when nothing else can happen."""
        events: list[Callable[[], None]] = [lambda way=way: way.popleft()() for way in self._parcels.values() if way]
        for machine in self.machines.values():
            if events and self.rng is None:
                break
            events += machine.work()
        slices = [event for machine in self.machines.values() for event in machine.slices()]
        if self.rng is not None:
            events += slices
        elif slices and not events:
            events = [lambda: [event() for event in slices].clear()]
        return events or [event for machine in self.machines.values() for event in machine.expiry()]
