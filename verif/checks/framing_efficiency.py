"""How much of the raw bytes of a link are payload, by packet size: python -m verif.checks.framing_efficiency."""

from rtl.contract.link import FLIT_BYTES, PACKET_HEADER_BYTES, UNIT_FLITS_MAX
from verif.golden.framing import FLIT_WORDS, Packet, flits_of, grouped

__all__ = ["SIZES", "efficiency", "table"]

SIZES = (8, 16, 32, 64, 128, 212, 256, 384, 448, 512)


def efficiency(size: int, *, packed: bool) -> tuple[int, int, float]:
    """Packets of a full unit, its flits, and payload bytes per raw byte; packed: as many in a unit as fit."""
    header = (0).to_bytes(1, "little") + (size & 0xFF).to_bytes(1, "little") + (size >> 8).to_bytes(1, "little")
    packet = Packet(0, 1, header.ljust(PACKET_HEADER_BYTES, b"\1") + bytes(size))
    unit = grouped([packet] * (UNIT_FLITS_MAX * FLIT_WORDS if packed else 1))[0]
    flits = len(flits_of(unit))
    return len(unit), flits, len(unit) * size / (FLIT_BYTES * flits)


def table() -> list[str]:
    """Lines of the table in docs/framing.md."""
    lines = ["| payload | packets in a unit | flits | payload of raw | one packet a unit |", "|---|---|---|---|---|"]
    for size in SIZES:
        packets, flits, share = efficiency(size, packed=True)
        alone = efficiency(size, packed=False)[2]
        lines.append(f"| {size} | {packets} | {flits} | {100 * share:.1f} % | {100 * alone:.1f} % |")
    return lines


if __name__ == "__main__":
    print("\n".join(table()))
