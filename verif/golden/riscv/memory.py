"""Address space of a hart: regions of RAM and of devices, and nothing between them."""

from collections.abc import Callable
from dataclasses import dataclass

from verif.golden.riscv.traps import Cause, Trap

__all__ = ["Device", "Memory"]

LIMIT = 1 << 32


@dataclass(frozen=True, slots=True)
class Device:
    """Registers behind an address: `load(address, bytes)` gives a value, `store(address, bytes, value)` takes one.

    Accesses are aligned, of 1, 2 or 4 bytes. Both refuse one by raising Trap. Instructions cannot be fetched from it.
    """

    size_bytes: int
    load: Callable[[int, int], int]
    store: Callable[[int, int, int], None]


class Memory:
    """Regions by address; outside them every access faults. The region added first is found fastest.

    Little-endian like the hart: a region is read through views in the order of the host, which must be the same.
    """

    def __init__(self):
        self._ram: list[tuple[int, int, dict[int, memoryview]]] = []  # base, bytes, view by bytes of an element
        self._code: list[tuple[int, int, memoryview]] = []  # base, last place where 4 bytes can begin, halfwords
        self._devices: list[tuple[int, Device]] = []

    def add(self, base: int, content: bytes | bytearray | Device, *, code: bool = True) -> None:
        """A region from `base` on. A bytearray is used itself, bytes are copied. `code`: instructions may be there.

        Errors: ValueError for a region that is not whole words, leaves the 32 bits or overlaps another.
        """
        size = content.size_bytes if isinstance(content, Device) else len(content)
        if base % 4 or size % 4 or not size:
            raise ValueError(f"a region is whole words, not {size} bytes from {base:#x}")
        if not 0 <= base <= LIMIT - size:
            raise ValueError(f"a region of {size} bytes from {base:#x} leaves the 32 bits of an address")
        for other, bytes_there in self.regions():
            if base < other + bytes_there and other < base + size:
                raise ValueError(f"a region of {size} bytes from {base:#x} overlaps that from {other:#x}")
        if isinstance(content, Device):
            self._devices.append((base, content))
            return
        view = memoryview(content if isinstance(content, bytearray) else bytearray(content))
        views = {1: view, 2: view.cast("H"), 4: view.cast("I")}
        self._ram.append((base, size, views))
        if code:
            self._code.append((base, size - 3, views[2]))

    def regions(self) -> list[tuple[int, int]]:
        """(base, bytes) of every region, RAM first."""
        return [(base, size) for base, size, _ in self._ram] + [(b, d.size_bytes) for b, d in self._devices]

    def fetch(self, address: int) -> int:
        """The instruction there: 16 bits, or 32 where the two lowest are ones. Errors: Trap with the faulting half."""
        for base, last, halves in self._code:
            offset = address - base
            if 0 <= offset < last:
                half = halves[offset >> 1]
                return half if half & 3 != 3 else half | halves[(offset >> 1) + 1] << 16
        half = self._fetch_half(address)  # the last halfword of a region, or none
        return half if half & 3 != 3 else half | self._fetch_half((address + 2) % LIMIT) << 16

    def load(self, address: int, size: int) -> int:
        """The value of 1, 2 or 4 bytes, without sign. Errors: Trap, misaligned before access fault."""
        if address & size - 1:
            raise Trap(Cause.LOAD_MISALIGNED, address)
        for base, room, views in self._ram:
            offset = address - base
            if 0 <= offset < room:
                return views[size][offset // size]
        for base, device in self._devices:
            if 0 <= address - base < device.size_bytes:
                return device.load(address, size) & (1 << 8 * size) - 1
        raise Trap(Cause.LOAD_ACCESS, address)

    def span(self, first: int, last: int, store: bool) -> memoryview | None:
        """Bytes `first` to `last` if they lie in one RAM and can be moved at once, by a `store` or by a load."""
        for base, room, views in self._ram:
            if base <= first and last < base + room:
                return views[1][first - base : last - base + 1]
        return None

    def store(self, address: int, size: int, value: int) -> None:
        """Write the low 1, 2 or 4 bytes of `value`. Errors: Trap, misaligned before access fault."""
        if address & size - 1:
            raise Trap(Cause.STORE_MISALIGNED, address)
        value &= (1 << 8 * size) - 1
        for base, room, views in self._ram:
            offset = address - base
            if 0 <= offset < room:
                views[size][offset // size] = value
                return
        for base, device in self._devices:
            if 0 <= address - base < device.size_bytes:
                device.store(address, size, value)
                return
        raise Trap(Cause.STORE_ACCESS, address)

    def _fetch_half(self, address: int) -> int:
        for base, last, halves in self._code:
            if 0 <= address - base < last + 3:
                return halves[address - base >> 1]
        raise Trap(Cause.FETCH_ACCESS, address)
