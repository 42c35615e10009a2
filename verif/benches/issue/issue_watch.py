"""What a trace is told of a queue: the very cycle in which an instruction goes to who executes it, and its number."""

from collections.abc import Sequence
from typing import Any

from verif.benches.issue.expected import Expected

__all__ = ["IssueWatch"]


class IssueWatch:
    """`told`: instructions that a trace was told of, which go in order. Faulty ones never do."""

    def __init__(self, dut: Any, has_engine: bool):
        self.dut = dut
        self.has_engine = has_engine
        self.told = 0

    def look(self, program: Sequence[Expected]) -> None:
        """The cycle that ends."""
        dut = self.dut
        to_engine = self.has_engine and dut.engine__command__valid.value == 1 and dut.engine__command__ready.value == 1
        to_ring = dut.release__valid.value == 1 and dut.release__ready.value == 1 and dut.refused.value == 0
        if dut.issue__valid.value == 0:
            assert not to_engine and not to_ring, "an instruction goes, and no trace is told"
            return
        assert int(dut.issue__sequence.value) == self.told, f"a trace is not told of instruction {self.told}"
        e = program[self.told]
        assert not e.cause and not e.refused, f"a trace is told that faulty instruction {self.told} goes"
        assert e.to_engine == to_engine and (e.f["opcode"] == 1) == to_ring, "a trace is told of another cycle"
        self.told += 1
