"""The two windows of a core into SBUF, of its own partitions alone."""

from rtl.contract.gpsimd import Region
from rtl.contract.memmap import PARTITION_STRIDE_BYTES
from verif.golden.memory import Memory
from verif.golden.riscv.memory import Device
from verif.golden.riscv.traps import Cause, Trap

__all__ = ["Windows"]

COLUMN_BYTES = 4  # bytes of a partition that lie side by side in the window of lanes


class Windows:
    """Bytes of partitions `first` to `first` + `lanes` - 1, as `rows` and as `lanes` are found in the address map.

    `moved_bytes`: loaded and stored so far.
    """

    def __init__(self, sbuf: Memory, first: int, lanes: int):
        self.moved_bytes = 0
        view = sbuf.bytes.reshape(-1).data
        self._views = {1: view, 2: view.cast("H"), 4: view.cast("I")}
        self._partition_bytes = sbuf.bytes.shape[1]
        self._first, self._lanes = first * self._partition_bytes, lanes
        self.rows = Device(lanes * PARTITION_STRIDE_BYTES, self._load_row, self._store_row)
        self.lanes = Device(lanes * self._partition_bytes, self._load_lane, self._store_lane)

    def _row(self, address: int, cause: Cause) -> int:
        """Where a byte of the window of rows lies in SBUF."""
        partition, byte = divmod(address - Region.SBUF_ROWS, PARTITION_STRIDE_BYTES)
        if byte >= self._partition_bytes:
            raise Trap(cause, address)
        return self._first + partition * self._partition_bytes + byte

    def _lane(self, address: int) -> int:
        """Where a byte of the window of lanes lies in SBUF."""
        word, byte = divmod(address - Region.SBUF_LANES, COLUMN_BYTES)
        column, partition = divmod(word, self._lanes)
        return self._first + partition * self._partition_bytes + column * COLUMN_BYTES + byte

    def _load_row(self, address: int, size: int) -> int:
        value = self._views[size][self._row(address, Cause.LOAD_ACCESS) // size]
        self.moved_bytes += size
        return value

    def _store_row(self, address: int, size: int, value: int) -> None:
        self._views[size][self._row(address, Cause.STORE_ACCESS) // size] = value
        self.moved_bytes += size

    def _load_lane(self, address: int, size: int) -> int:
        self.moved_bytes += size
        return self._views[size][self._lane(address) // size]

    def _store_lane(self, address: int, size: int, value: int) -> None:
        self.moved_bytes += size
        self._views[size][self._lane(address) // size] = value
