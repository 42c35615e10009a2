"""Programs of several cores on the RTL, joined by delayed wires, under the native driver."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_

import numpy as np

from firmware.image import Image, build_images
from firmware.program import Program
from rtl.contract.config import Config
from rtl.contract.memmap import Control, core_place
from rtl.contract.roles import needed
from sim.errors import PlexusError
from sim.native.library import Reason
from sim.native.system import CORES_MAX, DELAY_MAX, NativeSystem
from sim.run.result import RunResult
from sim.systems.core.verilated import REASON_ENDS, VerilatedDevice, build_core

__all__ = ["DELAY_CYCLES", "CoresResult", "run_cores"]

DELAY_CYCLES = 24
"""10 ns at 2.4 GHz."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoresResult:
    """A run of several cores, by core id (memmap.core_id). Cycles are tensor cycles.

    `end`: a key of sim.run.result.ENDS, "done" only if all cores are; `hbm`: what each HBM holds, to the end of the
    core's image; `sent_beats`: beats of 64 bytes that a core has put on its wires, headers among them. `seconds` of
    the wall and `cpu_seconds` of all threads count the loop alone, in which each core has run `simulated_cycles`.
    """

    end: str
    message: str
    results: Mapping[int, RunResult]
    hbm: Mapping[int, np.ndarray]
    sent_beats: Mapping[int, int]
    simulated_cycles: int
    seconds: float
    cpu_seconds: float

    @property
    def cycles(self) -> int:
        """Of the core that took longest; all start in one cycle."""
        return max(result.cycles for result in self.results.values())

    @property
    def core_cycles_per_cpu_second(self) -> float:
        """Cycles of all cores over the time of all threads."""
        return self.simulated_cycles * len(self.results) / self.cpu_seconds if self.cpu_seconds else 0.0


def _need_cores(cfg: Config, cores: Collection[int], delay_cycles: int, threads: int) -> None:
    if not 1 <= len(cores) <= CORES_MAX:
        raise PlexusError(f"a system has 1 to {CORES_MAX} cores, not {len(cores)}")
    if not 1 <= delay_cycles <= DELAY_MAX:
        raise PlexusError(f"a wire between cores takes 1 to {DELAY_MAX} cycles, not {delay_cycles}")
    if threads < 1:
        raise PlexusError(f"cores run on at least 1 thread, not {threads}")
    for core in cores:
        try:
            cfg.fabric.endpoint_map.encode(core_place(core))
        except ValueError as error:
            raise PlexusError(str(error)) from None


def run_cores(
    programs: Sequence[Program],
    cfg: Config,
    *,
    cores: Collection[int] | None = None,
    delay_cycles: int = DELAY_CYCLES,
    threads: int = 1,
    array: str = "native",
    max_cycles: int = 1 << 40,
    watch: Callable[[int], None] | None = None,
    plant: str = "",
) -> CoresResult:
    """Build the core with a link, a copy for each program, and run them together: CLEAR of all, RUN = 3 of all.

    Between any two cores there is a wire of `delay_cycles` each way. `threads`: how many share the cores; bits and
    cycles do not depend on it. `cores`: the ids of those that there are, if not those of all programs: programs of
    others only say where their tensors would lie. `watch` is called with the cycle a few times a second. `plant`: a
    fault of the wires (sim.native.system). Errors: PlexusError, ImageError, in a sentence.
    """
    there = [program.core for program in programs] if cores is None else list(cores)
    _need_cores(cfg, there, delay_cycles, threads)
    if missing := sorted(set(there) - {program.core for program in programs}):
        raise PlexusError(f"core {core_place(missing[0])} has no program: {len(there)} cores, {len(programs)} programs")
    for program in programs:
        if program.config != cfg:
            raise PlexusError(f"program {program.name} is for another configuration than the cores")
    images = build_images(programs)
    uses = reduce(or_, (program.uses for program in programs))
    built = build_core(needed(cfg, uses), array=array, joined=True)
    with NativeSystem(built.binary, cfg, there, delay_cycles=delay_cycles) as system:
        if plant:
            system.plant(plant)
        devices = [VerilatedDevice(cfg, built.binary, core=core) for core in system.cores]
        return _run(system, devices, {core: images[core] for core in there}, threads, max_cycles, watch)


def _run(
    system: NativeSystem,
    devices: Sequence[VerilatedDevice],
    images: Mapping[int, Image],
    threads: int,
    max_cycles: int,
    watch: Callable[[int], None] | None,
) -> CoresResult:
    system.reset()
    for device, image in zip(devices, images.values(), strict=True):
        device.place(image)
    system.host_write(None, Control.CLEAR, 1)
    begin = system.cycle
    system.host_write(None, Control.RUN, 3)
    limits = {"quiet_cycles": devices[0].quiet_cycles, "fault_quiet_cycles": devices[0].fault_quiet_cycles}
    first = system.cycle
    while True:
        left = max(0, max_cycles - (system.cycle - begin))
        reason = system.run(left, threads=threads, **limits)
        if watch is not None:
            watch(system.cycle - begin)
        if reason != Reason.TIME:
            break
    simulated = system.cycle - first
    message = system.message if reason in (Reason.PROTOCOL, Reason.FATAL) else ""
    if reason == Reason.FATAL:
        raise PlexusError(f"a core's model stopped at cycle {system.cycle}: {message}")
    if reason != Reason.DONE:
        system.host_write(None, Control.RUN, 0)  # counters stand still while they are read
    end = REASON_ENDS[reason]
    seconds, cpu_seconds = system.seconds, system.cpu_seconds
    results = {
        core: replace(device.result(end, message), wall_seconds=seconds, cpu_seconds=cpu_seconds / len(devices))
        for core, device in zip(images, devices, strict=True)
    }
    return CoresResult(
        end=end,
        message=message,
        results=results,
        hbm={core: d.core.read(0, images[core].hbm_bytes) for core, d in zip(images, devices, strict=True)},
        sent_beats={core: system.beats(i) for i, core in enumerate(images)},
        simulated_cycles=simulated,
        seconds=seconds,
        cpu_seconds=cpu_seconds,
    )
