"""Rows of transposes at the raw ports of PSUM."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from verif.benches.memory.psum_coverage import COVERAGE, OF_GROUPS
from verif.benches.memory.psum_writes import Row, random_row

__all__ = ["Transposes"]

_MEMBERS = ("valid", "element", "partitions", "data")


class Transposes:
    """One port for each row group. `rows`: what is on the ports in this cycle; `often`: probability of a row."""

    def __init__(self, dut: Any, rng: np.random.Generator, lanes: int, bank_rows: int):
        self.rng, self.lanes, self.bank_rows = rng, lanes, bank_rows
        self.often = 0.0
        self.rows: list[Row] = []
        self.ports: list[dict[str, Any]] = []
        while hasattr(dut, f"transposed__{len(self.ports)}__valid"):
            g = len(self.ports)
            self.ports.append({name: getattr(dut, f"transposed__{g}__{name}") for name in _MEMBERS})
        for port in self.ports:
            port["valid"].value = 0

    def drive(self, words: NDArray[np.integer], taken: set[int]) -> None:
        """Rows for the next cycle in any of `words`, each in a bank that is not `taken`, by sums or each other."""
        self.rows = []
        taken = set(taken)
        for port in self.ports:
            elements = [int(e) for w in words for e in (2 * w, 2 * w + 1) if int(e) // self.bank_rows not in taken]
            send = bool(elements) and self.rng.random() < self.often
            port["valid"].value = send
            if send:
                row = random_row(self.rng, self.lanes, elements, 0.0)
                self.rows.append(row)
                taken.add(row.element // self.bank_rows)
                port["element"].value = row.element
                port["partitions"].value = row.partitions
                port["data"].value = int.from_bytes(row.data.tobytes(), "little")

    def banks(self) -> set[int]:
        """Banks that the rows of the cycle that has just ended took."""
        every = (1 << self.lanes) - 1
        COVERAGE.when(self.rows, "row of a transpose")
        COVERAGE.when(any(row.partitions != every for row in self.rows), "transpose of some partitions")
        for row in self.rows:
            nan = (row.data & 0x7F80_0000 == 0x7F80_0000) & (row.data & 0x3F_FFFF != 0)
            COVERAGE.when(nan.any(), "transpose of a NaN with a payload")
        OF_GROUPS.when(len(self.rows) > 1, "transposes of two groups in one cycle")
        return {row.element // self.bank_rows for row in self.rows}
