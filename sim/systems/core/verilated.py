"""The core in Verilator, under the native driver, as a device."""

import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from firmware.image import Image, Region
from rtl.contract import gpsimd
from rtl.contract.config import Config
from rtl.contract.isa import COPY_QUEUES, OPCODE_QUEUE, Cause, Queue
from rtl.contract.limits import limits
from rtl.contract.memmap import Control, EngineRegister, QueueRegister, RingRegister, Space
from rtl.contract.timing import CONFLICT_PORTS, PARTED, PARTS, STALLS, WINDOWS, Engine
from sim.build.guided import Training
from sim.build.model import Built, build
from sim.errors import PlexusError
from sim.native.library import DRIVER_SOURCES, SAMPLER, NativeCore, Reason, whole_sequence
from sim.native.system import SYSTEM_SOURCES
from sim.run.result import EngineCycles, Fault, GpsimdCore, RunResult
from sim.run.waves import Waves

__all__ = ["REASON_ENDS", "VerilatedDevice", "build_core"]

REASON_ENDS = {
    Reason.LIMIT: "limit",
    Reason.DONE: "done",
    Reason.FAULT: "fault",
    Reason.STUCK: "stuck",
    Reason.PROTOCOL: "protocol",
    Reason.FATAL: "fatal",
}
"""Ends as results name them."""

_ITEM_STRIDE = 0x100
_PARTS_STRIDE = 0x200
QUIET_CYCLES = 50_000
"""So long without a transfer on AXI, a retired instruction or a busy engine: a program is stuck. On top
of what one access of HBM and the slowest engine's pipeline may take."""
FAULT_QUIET_CYCLES = 2_000
"""The same, once a queue or ring has halted: what still runs is given time to end."""
_SLOW_STEPS = 64  # cycles of its own that an engine may spend before the first and behind the last busy one


def build_core(
    cfg: Config,
    *,
    array: str = "native",
    waves: str = "",
    fast: bool = False,
    profiled: bool = False,
    joined: bool = False,
) -> Built:
    """The core's model with the native driver in it, and a sampler if it is `profiled`. `fast`: trained. `joined`: with
    its packet streams, for a NativeSystem."""
    if fast and (array != "native" or waves):
        raise PlexusError("--fast is for runs on the native array without waves: what the others wait for is elsewhere")
    if array not in ("native", "structural"):
        raise PlexusError(f"the array is native or structural, not {array!r}")
    options = {"form": array, "limited": True} | ({"link": True} if joined else {})
    long = array == "native"  # tiles of a structural array are many and gain nothing
    sources = (*(SYSTEM_SOURCES if joined else DRIVER_SOURCES), *((SAMPLER,) if profiled else ()))
    return build(
        "core",
        cfg,
        kind="native",
        options=options,
        waves=waves,
        extra_cpp=sources,
        runs_long=long,
        profiled=profiled,
        training=_training() if fast else None,
    )


def _training() -> Training:
    """Runs of the core that its model is compiled for, if that is asked."""
    trainer = Path(__file__).with_name("train.py")
    module = "sim.systems.core.train"
    return Training((sys.executable, "-m", module), hashlib.sha256(trainer.read_bytes()).hexdigest())


class VerilatedDevice:
    """A core of configuration `cfg` from the library at `binary`. A context manager.

    `waves`, for a model built with waves, numbers cycles as the report does: 0 is where the program starts.
    `watch`, if given, is called with the cycle a few times a second; what it raises ends the run. `trace_records`: how
    many records of a trace are kept; with 0 there is none. `core`: one that is there already, as of a NativeSystem.
    """

    name = "rtl"

    def __init__(
        self,
        cfg: Config,
        binary: Path,
        *,
        waves: Waves | None = None,
        max_cycles: int = 1 << 40,
        quiet_cycles: int | None = None,
        watch: Callable[[int], None] | None = None,
        trace_records: int = 0,
        core: NativeCore | None = None,
    ):
        self.cfg = cfg
        self.trace_records = trace_records
        self.max_cycles = max_cycles
        step = -(-cfg.tensor.clock_mhz // cfg.vector.clock_mhz)
        slow = _SLOW_STEPS * step + 2 * cfg.latency_cycles
        self.quiet_cycles = QUIET_CYCLES + slow if quiet_cycles is None else quiet_cycles
        self.fault_quiet_cycles = FAULT_QUIET_CYCLES + slow
        self.watch = watch
        self.waves = waves
        self._scope = waves.scope_in(binary.parent) if waves else ""
        self.core = NativeCore(binary, cfg) if core is None else core
        self.core.limit(limits(cfg))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.core.close()

    def load(self, image: Image) -> None:
        """Reset the core, fill HBM, tell it where queues and rings are."""
        self.core.reset()
        self.place(image)

    def place(self, image: Image) -> None:
        """`load` behind a reset."""
        self.image = image
        core = self.core
        core.load(0, image.memory())
        for queue, (base, count) in image.queues.items():
            at = Control.QUEUE + queue * _ITEM_STRIDE
            core.host_write(at + QueueRegister.BASE, base)
            core.host_write(at + QueueRegister.COUNT, count)
        for ring, (base, count) in enumerate(image.rings):
            at = Control.RING + ring * _ITEM_STRIDE
            core.host_write(at + RingRegister.BASE, base)
            core.host_write(at + RingRegister.COUNT, count)

    def run(self) -> RunResult:
        """Run to the end, whatever end that is; read counters and outputs."""
        core = self.core
        if self.trace_records:
            core.start_trace(self.trace_records)
        core.host_write(Control.RUN, 1)
        begin = core.cycle
        if self.waves is not None:
            core.waves(self.waves.path, scope=self._scope, first=self.waves.first, end=self.waves.end)
        while True:
            left = max(0, self.max_cycles - (core.cycle - begin))
            reason = core.run(left, quiet_cycles=self.quiet_cycles, fault_quiet_cycles=self.fault_quiet_cycles)
            if self.watch is not None:
                self.watch(core.cycle - begin)
            if reason != Reason.TIME:
                break
        message = core.message if reason in (Reason.PROTOCOL, Reason.FATAL) else ""
        if reason == Reason.FATAL:
            raise PlexusError(f"the model stopped at cycle {core.cycle}: {message}")
        if reason != Reason.DONE:
            core.host_write(Control.RUN, 0)  # counters stand still while they are read
        return self.result(REASON_ENDS[reason], message)

    def read(self, region: Region) -> np.ndarray:
        """The bits of a region of HBM. PlexusError for another memory."""
        if region.space != Space.HBM:
            raise PlexusError(f"{region.name} lies in {region.space.name}; the driver reads regions of HBM only")
        data = self.core.read(region.offset, region.bytes)
        return data.view(np.dtype(region.dtype)).reshape(region.shape)

    def result(self, end: str, message: str) -> RunResult:
        """Counters and outputs of a core that stands still."""
        core = self.core
        read = core.host_read
        return RunResult(
            device=self.name,
            end=end,
            message=message,
            cycles=read(Control.CYCLES),
            engines={engine.name.lower(): self._engine(engine) for engine in Engine},
            windows={engine.name.lower(): self._window(engine) for engine in WINDOWS},
            hbm_bytes_read=read(Control.HBM_READ),
            hbm_bytes_written=read(Control.HBM_WRITTEN),
            conflicts={name: read(Control.CONFLICT + 8 * i) for i, name in enumerate(CONFLICT_PORTS)},
            faults=self._faults(),
            outputs={name: self.read(region) for name, region in self.image.outputs.items()},
            registers={n: int(self.read(r).view(np.int32)[0]) for n, r in self.image.registers.items()},
            wall_seconds=core.seconds,
            cpu_seconds=core.cpu_seconds,
            retired=core.retire_log(),
            retired_total=core.retired,
            printed={core: text for core in range(gpsimd.CORES_MAX) if (text := self.core.printed(core))},
            gpsimd_cores=self._gpsimd_cores(),
            progress=self._progress() if end != "done" else {},
            hbm=core.hbm_counters(),
            trace=core.end_trace() if self.trace_records else None,
        )

    def _engine(self, engine: Engine) -> EngineCycles:
        at = Control.ENGINE + engine * _ITEM_STRIDE
        read = self.core.host_read
        return EngineCycles(
            busy=read(at + EngineRegister.BUSY),
            idle=read(at + EngineRegister.IDLE),
            stall={cause: read(at + EngineRegister.STALL + 8 * i) for i, cause in enumerate(STALLS[engine])},
            parts=self._parts(engine),
        )

    def _gpsimd_cores(self) -> tuple[GpsimdCore, ...]:
        """What the cores of the programmable engine counted; nothing if none had a program, or there are none."""
        if not self.cfg.gpsimd.enabled:
            return ()

        def count(core: int, counter: gpsimd.Counter) -> int:
            return self.core.host_read(Control.GPSIMD + core * _ITEM_STRIDE + 8 * counter)

        cores, counters = range(gpsimd.cores(self.cfg.partitions)), gpsimd.Counter
        instructions = [count(core, counters.INSTRUCTIONS) for core in cores]
        if not any(instructions):
            return ()
        stalls = [c for c in counters if counters.SLEEP <= c <= counters.FAULT]
        return tuple(
            GpsimdCore(
                busy=count(core, counters.BUSY),
                idle=count(core, counters.IDLE),
                stall={stall.name.lower(): count(core, stall) for stall in stalls},
                instructions=instructions[core],
            )
            for core in cores
        )

    def _parts(self, engine: Engine) -> dict[str, dict[str, int]]:
        """Parts of busy and of `unit` by opcode, those that are not 0."""
        if engine not in PARTED:
            return {}
        parts: dict[str, dict[str, int]] = {}
        for n, state in enumerate(PARTS):
            block = Control.PART + engine * _PARTS_STRIDE + n * _ITEM_STRIDE
            mine = (o for o, queue in OPCODE_QUEUE.items() if queue.name == engine.name)
            counts = {o.name.lower(): self.core.host_read(block + 8 * (o % 32)) for o in mine}
            parts[state] = {name: count for name, count in counts.items() if count}
        return parts

    def _window(self, engine: Engine) -> tuple[int, int]:
        first, last = (self.core.host_read(Control[f"{engine.name}_{end}"]) for end in ("FIRST", "LAST"))
        return first, last

    def _items(self) -> list[tuple[str, int, int]]:
        """Name, address of the registers, and instructions or descriptors of each queue and ring."""
        queues = [(q.name.lower(), Control.QUEUE + q * _ITEM_STRIDE, self.image.instructions.get(q, 0)) for q in Queue]
        rings = [(f"ring {i}", Control.RING + i * _ITEM_STRIDE, r[1]) for i, r in enumerate(self.image.rings)]
        return queues + rings + self._copies()

    def _copies(self) -> list[tuple[str, int, int]]:
        """The same of the queues' own rings, whose registers lie behind those of the queue, in the same order."""
        places = {
            q: Control.QUEUE + q * _ITEM_STRIDE + QueueRegister.COPIES - QueueRegister.ISSUED for q in COPY_QUEUES
        }
        return [
            (f"{q.name.lower()} copies", at, self.core.host_read(at + QueueRegister.ISSUED)) for q, at in places.items()
        ]

    def _faults(self) -> tuple[Fault, ...]:
        faults: list[Fault] = []
        for name, at, _ in self._items():
            record = self.core.host_read(at + QueueRegister.FAULT)
            if record & 0xFF:
                address = self.core.host_read(at + QueueRegister.FAULT_ADDRESS)
                cause = Cause(record & 0xFF)
                items = at if "copies" not in name else at + QueueRegister.ISSUED - QueueRegister.COPIES  # of the queue
                done = self.core.host_read(items + QueueRegister.RETIRED)  # of a ring: RingRegister.COMPLETED
                sequence = whole_sequence(record >> 16 & 0xFFFF, done)
                faults.append(Fault(queue=name, sequence=sequence, cause=cause, address=address))
        return tuple(faults)

    def _progress(self) -> dict[str, str]:
        """Queues and rings that are not through, and how far they came."""
        behind: dict[str, str] = {}
        for name, at, count in self._items():
            done = self.core.host_read(at + QueueRegister.RETIRED)
            if done < count:
                behind[name] = f"{done} of {count}"
        return behind
