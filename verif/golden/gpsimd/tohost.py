"""Address space of a core whose image ends by a store to `tohost`, as public test suites do."""

from rtl.contract.gpsimd import Region
from verif.golden.gpsimd.ended import Ended
from verif.golden.riscv.memory import Memory

__all__ = ["TohostMemory"]


class TohostMemory(Memory):
    """A store that sets bit 0 of the word at `tohost` ends the run; the other bits of what it stores are the exit
    value. Local memory has two addresses, which are one here."""

    def __init__(self, tohost: int, local_bytes: int):
        super().__init__()
        self._local_bytes = local_bytes
        self._tohost = self._folded(tohost)

    def store(self, address: int, size: int, value: int) -> None:
        """See Memory. The store is made before the run ends."""
        super().store(address, size, value)
        value &= (1 << 8 * size) - 1
        if value & 1 and self._folded(address) == self._tohost:
            raise Ended.by_exit(value >> 1)

    def span(self, first: int, last: int, store: bool) -> memoryview | None:
        """See Memory. Stores to the word that ends the run are made one by one."""
        if store and self._folded(first) <= self._tohost <= self._folded(last):
            return None
        return super().span(first, last, store)

    def _folded(self, address: int) -> int:
        """The address in LOCAL of a byte of LOCAL_TOO; others as they are."""
        offset = address - Region.LOCAL_TOO
        return Region.LOCAL + offset if 0 <= offset < self._local_bytes else address
