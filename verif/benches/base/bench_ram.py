"""RAM cell: masks, old data on a collision, a held answer; every row starts as all ones."""

import cocotb

from verif.agents.bench import Bench
from verif.bench import Run
from verif.checks.coverage import Coverage

_SHAPES = (
    {"width": 128, "depth": 6, "granule": 8},
    {"width": 96, "depth": 5, "granule": 32},
    {"width": 37, "depth": 4},
)

RUNS = tuple(Run("ram", options=shape, planted=False) for shape in _SHAPES)

COVERAGE = Coverage(
    "ram",
    [
        "reads a row in the cycle that writes it",
        "reads a row in the cycle after it was written",
        "holds its answer while its row is written",
        "writes all of a row",
        "writes none of a row",
        "writes part of a row",
    ],
)


class RamBench(Bench):
    """Random reads and writes on few rows, so that they meet; a list of integers is the model."""

    def __init__(self, dut) -> None:
        super().__init__(dut)
        self.width = self.options["width"]
        self.depth = self.options["depth"]
        self.granule = self.options.get("granule", self.width)
        self.parts = self.width // self.granule
        self.rows = [(1 << self.width) - 1] * self.depth

    def spread(self, mask: int) -> int:
        """The mask with each bit as wide as a granule."""
        part = (1 << self.granule) - 1
        return sum(part << self.granule * g for g in range(self.parts) if mask >> g & 1)


@cocotb.test(timeout_time=100, timeout_unit="us")
async def reads_what_was_written(dut) -> None:
    bench = RamBench(dut)
    rng = bench.rng
    for handle in (dut.read_en, dut.write_en):
        handle.value = 0
    await bench.start()
    shown: int | None = None  # nothing is promised before the first read
    shown_row = written_row = -1
    every = (1 << bench.parts) - 1
    for _ in range(3000):
        read, write = (bool(rng.random() < 0.6) for _ in range(2))
        row = int(rng.integers(bench.depth))
        target = row if rng.random() < 0.3 else int(rng.integers(bench.depth))
        data = int.from_bytes(rng.bytes(-(-bench.width // 8)), "little") & ((1 << bench.width) - 1)
        mask = int.from_bytes(rng.bytes(-(-bench.parts // 8)), "little") & every
        mask = (mask, every, 0, mask & -mask)[int(rng.integers(4))]
        dut.read_en.value = read
        dut.read_address.value = row
        dut.write_en.value = write
        dut.write_address.value = target
        dut.write_mask.value = mask
        dut.write_data.value = data
        await bench.edge
        if shown is not None:
            got = int(dut.read_data.value)
            assert got == shown, f"row {shown_row}: {got:x}, not {shown:x}"
        if read:
            COVERAGE.when(write and mask and target == row, "reads a row in the cycle that writes it")
            COVERAGE.when(row == written_row, "reads a row in the cycle after it was written")
            shown, shown_row = bench.rows[row], row
        elif write and mask and target == shown_row:
            COVERAGE.hit("holds its answer while its row is written")
        written_row = -1
        if write:
            wide = bench.spread(mask)
            bench.rows[target] = bench.rows[target] & ~wide | data & wide
            written_row = target if mask else -1
            COVERAGE.hit(
                "writes none of a row"
                if not mask
                else "writes all of a row"
                if mask == every
                else "writes part of a row"
            )
    if bench.parts == 1:
        COVERAGE.hit("writes part of a row")  # there are no parts
    COVERAGE.require_all()
