"""The host side of the control registers."""

from verif.agents.bench import Bench

__all__ = ["Host"]


class Host:
    """Reads and writes registers, one request at a time or a read each cycle."""

    def __init__(self, bench: Bench):
        self.dut = bench.dut
        self.edge = bench.edge
        for name in ("host_valid", "host_write", "host_address", "host_wdata"):
            getattr(self.dut, name).value = 0

    async def write(self, address: int, value: int) -> None:
        """Write a register."""
        self.dut.host_valid.value = 1
        self.dut.host_write.value = 1
        self.dut.host_address.value = address
        self.dut.host_wdata.value = value
        await self.edge
        self.dut.host_valid.value = 0
        self.dut.host_write.value = 0

    async def read(self, address: int) -> int:
        """Read a register."""
        return (await self.read_all([address]))[0]

    async def read_all(self, addresses: list[int]) -> list[int]:
        """Read registers, a request each cycle; an answer comes exactly two cycles after its request."""
        values: list[int] = []
        for step in range(len(addresses) + 2):
            self.dut.host_valid.value = int(step < len(addresses))
            self.dut.host_address.value = addresses[step] if step < len(addresses) else 0xFFF8
            await self.edge
            if step >= 2:
                values.append(int(self.dut.host_rdata.value))
        return values
