"""The ports of SBUF as its bench asks at them, and what is to be seen of them."""

from dataclasses import dataclass, field
from functools import cache
from typing import Any

from rtl.contract.descriptor import DmaAdd
from verif.checks.coverage import Coverage
from verif.golden.memory import Memory

__all__ = ["COVERAGE", "PATIENCE_CYCLES", "READS", "READ_PINS", "Port", "Request", "WRITES", "WRITE_CYCLES", "contents"]


READS = ("moving", "stationary", "vector", "scalar", "gpsimd")
WRITES = ("vector", "scalar", "gpsimd")
READ_PINS = ("moving__0", "stationary__0", "vector", "scalar", "gpsimd")
PATIENCE_CYCLES = 8
WRITE_CYCLES = 49  # that a write waits behind four sums at most

COVERAGE = Coverage(
    "sbuf",
    [
        *(
            f"{way} {name} {what}"
            for what in ("granted", "refused")
            for way, names in (("read", READS), ("write", WRITES))
            for name in names
            if (way, name, what) not in {("read", "moving", "refused"), ("write", "vector", "refused")}
        ),
        "first read port refused by an aged mover",
        "first write port refused by an aged mover",
        "refused in one quadrant, free in another",
        "two ports share a quadrant in different banks",
        "mover read waits to its limit",
        "mover write waits to its limit",
        "mover waits because of its even bank",
        "mover waits because of its odd bank",
        "all movers read and write in a cycle",
        "word read and written in the same cycle",
        "write of no byte",
        "write of part of a pair",
        "write with partitions masked in a quadrant",
        "last word of a partition",
        *(f"mover adds {add.name}" for add in DmaAdd if add),
        "sum waits for one of the same bytes",
        "copy waits for a sum of the same bytes",
        "copy waits because a sum is written",
        "sum waits because all places are taken",
        "sum's read waits for the mover's read of its banks",
        "sum's read beside the mover's read",
        "sum's read goes before the mover's read",
        "sum's read waits to its limit",
        "sum written late",
        "sum of part of a pair",
        "end of a row of sums",
        "sum of every port in a cycle",
    ],
)


@cache
def contents(partitions: int, partition_bytes: int) -> Memory:
    """The model of the memory; one for all tests, because a reset leaves the contents."""
    return Memory(partitions, partition_bytes)


@dataclass
class Request:
    """What a port asks for. Engines: words by quadrant; movers: lane and pair."""

    quadrants: int = 0
    words: list[int] = field(default_factory=list)
    lane: int = 0
    pair: int = 0
    data: int = 0
    bytes: int = 0
    partitions: int = 0
    add: int = 0
    last: int = 0
    waited: int = 0


class Port:
    """Handles of one direction of one port, and its request."""

    def __init__(self, dut: Any, prefix: str, names: tuple[str, ...]):
        self.handles = {name: getattr(dut, f"{prefix}{name}") for name in names}
        self.valid = getattr(dut, f"{prefix}valid")
        self.ready = getattr(dut, f"{prefix}ready")
        self.request: Request | None = None
        self.valid.value = 0

    def ask(self, request: Request | None, word_bits: int) -> None:
        """Put a request (or none) on the port."""
        self.request = request
        self.valid.value = request is not None
        if request is None:
            return
        for name, handle in self.handles.items():
            if name == "word":
                handle.value = sum(w << word_bits * q for q, w in enumerate(request.words))
            else:
                handle.value = getattr(request, name)
