"""How much of the raw bytes of a link are payload, by packet size: python -m verif.checks.framing_efficiency."""

from rtl.contract.link import FLIT_BYTES, PACKET_HEADER_BYTES
from rtl.contract.link_config import LINKS, LinkConfig
from verif.golden.framing import Packet, flits_needed, grouped

__all__ = ["SIZES", "efficiency", "table"]

SIZES = (8, 16, 32, 64, 128, 212, 256, 384, 448, 512)
_COLUMNS = {"x1, x2": "x2", "x4": "x4", "x8": "x8", "x16": "x16"}
_MANY = 200


def efficiency(size: int, cfg: LinkConfig | None) -> tuple[int, int, float]:
    """Packets and flits of a unit, and payload bytes per raw byte; of a unit that has waited long in a link's sender,
    or, without a configuration, of one that goes at once."""
    header = (0).to_bytes(1, "little") + (size & 0xFF).to_bytes(1, "little") + (size >> 8).to_bytes(1, "little")
    packet = Packet(0, 1, header.ljust(PACKET_HEADER_BYTES, b"\1") + bytes(size))
    unit = [packet] if cfg is None else grouped([packet] * _MANY, cfg)[-2]
    flits = flits_needed(unit)
    return len(unit), flits, len(unit) * size / (FLIT_BYTES * flits)


def table() -> list[str]:
    """Lines of the table in docs/framing.md."""
    lines = ["| payload | goes at once | " + " | ".join(_COLUMNS) + " |", "|---" * (len(_COLUMNS) + 2) + "|"]
    for size in SIZES:
        cells = [f"{100 * efficiency(size, None)[2]:.1f} %"]
        for name in _COLUMNS.values():
            packets, flits, share = efficiency(size, LINKS[name])
            cells.append(f"{packets} in {flits}, {100 * share:.1f} %")
        lines.append(f"| {size} | " + " | ".join(cells) + " |")
    return lines


if __name__ == "__main__":
    print("\n".join(table()))
