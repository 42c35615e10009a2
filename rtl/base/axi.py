"""AXI4 manager signatures, as far as this machine uses them: INCR bursts of full-width beats.

Source: AMBA AXI protocol specification, issue H, section A2. Members are flattened with two
underscores, so a port `m_axi0` has a signal `m_axi0__araddr`.
"""

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = [
    "ADDRESS_BITS",
    "FAST_ID",
    "FETCH_ID",
    "ID_BITS",
    "LINK_ID",
    "URGENT_QOS",
    "AxiReadSignature",
    "AxiSignature",
    "axi_size",
]

ADDRESS_BITS = 40  # an HBM offset
ID_BITS = 6
FETCH_ID = 16  # ids below belong to DMA movers, from here to instruction and descriptor fetch
FAST_ID = 40  # from here: the lanes of DMA movers for the class that goes first
LINK_ID = 56  # from here: the movers of a link, two for each of dma.link_movers
URGENT_QOS = 15  # AxQOS of instructions, descriptors and that class; all else has 0


def axi_size(port_bytes: int) -> int:
    """AxSIZE of a full-width beat."""
    return port_bytes.bit_length() - 1


def _read(port_bytes: int) -> dict[str, wiring.Member]:
    return {
        "arvalid": Out(1),
        "arready": In(1),
        "arid": Out(ID_BITS),
        "araddr": Out(ADDRESS_BITS),
        "arlen": Out(8),
        "arsize": Out(3),
        "arburst": Out(2),
        "arqos": Out(4),
        "rvalid": In(1),
        "rready": Out(1),
        "rid": In(ID_BITS),
        "rdata": In(8 * port_bytes),
        "rresp": In(2),
        "rlast": In(1),
    }


def _write(port_bytes: int) -> dict[str, wiring.Member]:
    return {
        "awvalid": Out(1),
        "awready": In(1),
        "awid": Out(ID_BITS),
        "awaddr": Out(ADDRESS_BITS),
        "awlen": Out(8),
        "awsize": Out(3),
        "awburst": Out(2),
        "awqos": Out(4),
        "wvalid": Out(1),
        "wready": In(1),
        "wdata": Out(8 * port_bytes),
        "wstrb": Out(port_bytes),
        "wlast": Out(1),
        "bvalid": In(1),
        "bready": Out(1),
        "bid": In(ID_BITS),
        "bresp": In(2),
    }


class AxiReadSignature(wiring.Signature):
    """The AR and R channels of a manager."""

    def __init__(self, port_bytes: int):
        self.port_bytes = port_bytes
        super().__init__(_read(port_bytes))


class AxiSignature(wiring.Signature):
    """All five channels of a manager."""

    def __init__(self, port_bytes: int):
        self.port_bytes = port_bytes
        super().__init__({**_read(port_bytes), **_write(port_bytes)})
