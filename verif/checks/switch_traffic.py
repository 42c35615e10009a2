"""Throughput and fairness of the golden scheduler under traffic: python -m verif.checks.switch_traffic [NAME...].

A pool of 128 flits an input, no speed-up, one slot from what is held to what is sent; what arrives at a full pool
waits at its source. Every seed has its own random port labels.
"""

import argparse
import dataclasses
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rtl.contract.link_config import LinkConfig
from rtl.contract.switch_config import SwitchConfig
from verif.golden.switch_schedule import Schedule

__all__ = ["PATTERNS", "Measured", "jain", "run"]

POOL_FLITS = 128


def uniform(input_: int, ports: int, rng: np.random.Generator) -> int:
    """Any output."""
    return int(rng.integers(ports))


def diagonal(input_: int, ports: int, rng: np.random.Generator) -> int:
    """Two thirds to one output, one third to the next."""
    return (input_ + (rng.random() < 1 / 3)) % ports


def unbalanced(input_: int, ports: int, rng: np.random.Generator) -> int:
    """Half to the own output, half to any."""
    return input_ if rng.random() < 0.5 else uniform(input_, ports, rng)


def permutation(input_: int, ports: int, rng: np.random.Generator) -> int:
    """One output each."""
    return (input_ + 5) % ports


def senders(count: int) -> Callable[[int, int, np.random.Generator], int]:
    """`count` inputs to one output, the others silent (-1)."""
    return lambda input_, ports, rng: 0 if input_ < count else -1


PATTERNS: dict[str, Callable[[int, int, np.random.Generator], int]] = {
    "uniform": uniform,
    "diagonal": diagonal,
    "unbalanced": unbalanced,
    "permutation": permutation,
    "senders2": senders(2),
    "senders3": senders(3),
    "senders16": senders(16),
}


def jain(values: np.ndarray) -> float:
    """Jain's index of fairness: 1 if all are alike."""
    return float(values.sum() ** 2 / (len(values) * (values**2).sum())) if values.any() else 0.0


@dataclass
class Measured:
    """Flits by (input, output, queue) in the slots measured."""

    flits: np.ndarray
    slots: int
    wait_slots: np.ndarray  # of units that began, from complete to begun

    @property
    def throughput(self) -> float:
        """Flits a port a slot."""
        return self.flits.sum() / (self.slots * self.flits.shape[0])


class _Input:
    """Source, pool and lists of one input."""

    def __init__(self, outputs: int, queues: int):
        self.queues = queues
        self.lists = [deque[tuple[int, int]]() for _ in range(outputs * queues)]  # flits, slot
        self.bits = 0
        self.lengths = [0] * outputs
        self.used = 0
        self.used_by_class = [0] * (queues // 2)
        self.going = 0  # flits of the unit under way that remain
        self.coming: tuple[int, int, int] | None = None  # list, flits of the unit, flits still to come

    def pop(self, output: int, queue: int, slot: int) -> int:
        """A unit begins; slots that it waited."""
        index = output * self.queues + queue
        self.going, since = self.lists[index].popleft()
        self.lengths[output] -= self.going
        if not self.lists[index]:
            self.bits ^= 1 << index
        return slot - since

    def top_up(self, slot: int, units: Sequence[tuple[int, int]]) -> None:
        """The first flit of the next unit of these that still has room in its class."""
        if self.coming is None:
            for index, flits in units:
                class_ = index % self.queues // 2
                if self.used_by_class[class_] + flits <= POOL_FLITS * 2 // self.queues:
                    self.used_by_class[class_] += flits
                    self.arrive(slot, lambda chosen=(index, flits): chosen)
                    return
        else:
            self.arrive(slot, lambda: None)

    def arrive(self, slot: int, unit: Callable[[], tuple[int, int] | None]) -> None:
        """A flit, if there is one and it has room."""
        if self.coming is None and (new := unit()):
            self.coming = (*new, new[1])
        if self.coming and self.used < POOL_FLITS:
            index, flits, left = self.coming
            self.used += 1
            self.coming = (index, flits, left - 1) if left > 1 else None
            if self.coming is None:
                self.lists[index].append((flits, slot))
                self.bits |= 1 << index
                self.lengths[index // self.queues] += flits


def run(
    cfg: SwitchConfig,
    pattern: Callable[[int, int, np.random.Generator], int],
    *,
    seed: int,
    load: float = 1.0,
    unit_flits: int = 1,
    queues: tuple[int, ...] = (0,),
    classes_of: Callable[[int], Sequence[int]] | None = None,
    slots: int = 20_000,
    warm_up: int = 5_000,
) -> Measured:
    """Run the scheduler under that traffic. queues: those that units are spread over.

    classes_of: classes that an input (by its place in the pattern) sends, each as much as it can, with a share of
    the pool of its own; `load` and `queues` mean nothing then.
    """
    rng = np.random.default_rng(seed)
    label = rng.permutation(cfg.ports)
    place = np.argsort(label)
    count, width = cfg.inputs, cfg.link.queues
    inputs = [_Input(count, width) for _ in range(count)]
    schedule = Schedule(cfg)
    ready = (1 << count * width) - 1
    flits = np.zeros((cfg.ports, cfg.ports, width), dtype=np.int64)
    waits: list[int] = []

    def unit(i: int) -> Callable[[], tuple[int, int] | None]:
        def draw() -> tuple[int, int] | None:
            if load < 1 and rng.random() >= load / (unit_flits - load * (unit_flits - 1)):
                return None
            output = pattern(int(place[i]), cfg.ports, rng)
            return None if output < 0 else (int(label[output]) * width + int(rng.choice(queues)), unit_flits)

        return draw

    draws = [unit(i) for i in range(cfg.ports)]
    for slot in range(-warm_up, slots):
        for i, grant in schedule.grants.items():
            source = inputs[i]
            if grant.first:
                wait = source.pop(grant.output, grant.queue, slot)
                if slot >= 0:
                    waits.append(wait)
            source.going -= 1
            source.used -= 1
            source.used_by_class[grant.queue // 2] -= 1
            if slot >= 0:
                flits[place[i], place[grant.output], grant.queue] += 1
        more = sum(1 << i for i, source in enumerate(inputs) if source.going)
        schedule.step([s.bits for s in inputs], [s.lengths for s in inputs], more, ready)
        for i, draw in enumerate(draws):
            if classes_of is None:
                inputs[i].arrive(slot, draw)
                continue
            output = pattern(int(place[i]), cfg.ports, rng)
            if output >= 0 or inputs[i].coming:
                queue = int(label[output]) * width + int(rng.integers(2))
                classes = rng.permutation(classes_of(int(place[i])))
                inputs[i].top_up(slot, [(queue + 2 * int(c), unit_flits) for c in classes])
    return Measured(flits, slots, np.array(waits))


def _report(cfg: SwitchConfig, names: list[str], seeds: int, **options: object) -> None:
    for name in names:
        for seed in range(1, seeds + 1):
            got = run(cfg, PATTERNS[name], seed=seed, **options)  # type: ignore[arg-type]
            by_input = got.flits.sum((1, 2)).astype(float)
            active = by_input[: int(name[7:])] if name.startswith("senders") else by_input
            scale = cfg.ports if name.startswith("senders") else 1
            print(
                f"{name:12} seed {seed} throughput {got.throughput * scale:.4f} jain {jain(active):.4f} "
                f"wait p50 {np.percentile(got.wait_slots, 50):.0f} p99 {np.percentile(got.wait_slots, 99):.0f} "
                f"max {got.wait_slots.max()}",
                flush=True,
            )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=list(PATTERNS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--slots", type=int, default=20_000)
    parser.add_argument("--ports", type=int, default=16)
    parser.add_argument("--matching", default="merged")
    parser.add_argument("--unit-flits", type=int, default=1)
    parser.add_argument("--load", type=float, default=1.0)
    parser.add_argument("--spread", action="store_true", help="units spread over all queues")
    parser.add_argument("--strict", type=int, default=-1)
    parser.add_argument("--weights", default="")
    given = parser.parse_args()
    link = LinkConfig(strict_class=given.strict)
    if given.weights:
        link = dataclasses.replace(link, weights=tuple(int(w) for w in given.weights.split(",")))
    cfg = SwitchConfig(ports=given.ports, matching=given.matching, link=link)
    queues = tuple(range(link.queues)) if given.spread else (0,)
    _report(
        cfg,
        given.names,
        given.seeds,
        slots=given.slots,
        unit_flits=given.unit_flits,
        load=given.load,
        queues=queues,
    )


if __name__ == "__main__":
    main()
