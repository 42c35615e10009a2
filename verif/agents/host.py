"""The host side of the control registers."""

from verif.agents.bench import Bench

__all__ = ["Host"]


class Host:
    """Reads and writes registers, one request at a time or a read each cycle; its pins begin with `prefix`."""

    def __init__(self, bench: Bench, prefix: str = ""):
        names = ("valid", "write", "address", "wdata", "rdata")
        self.pins = {name: getattr(bench.dut, f"{prefix}host_{name}") for name in names}
        self.edge = bench.edge
        for name in names[:4]:
            self.pins[name].value = 0

    async def write(self, address: int, value: int) -> None:
        """Write a register."""
        self.pins["valid"].value = 1
        self.pins["write"].value = 1
        self.pins["address"].value = address
        self.pins["wdata"].value = value
        await self.edge
        self.pins["valid"].value = 0
        self.pins["write"].value = 0

    async def read(self, address: int) -> int:
        """Read a register."""
        return (await self.read_all([address]))[0]

    async def read_all(self, addresses: list[int]) -> list[int]:
        """Read registers, a request each cycle; an answer comes exactly two cycles after its request."""
        values: list[int] = []
        for step in range(len(addresses) + 2):
            self.pins["valid"].value = int(step < len(addresses))
            self.pins["address"].value = addresses[step] if step < len(addresses) else 0xFFF8
            await self.edge
            if step >= 2:
                values.append(int(self.pins["rdata"].value))
        return values
