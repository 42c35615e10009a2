"""Where a switch sends units, and which refused ones must be answered, from the text of docs/switch-buffer.md."""

from rtl.contract.link import PacketOpcode
from rtl.contract.switch_config import SwitchConfig
from verif.golden.framing import Packet, body_length

__all__ = ["RouteTable", "asks_for_answer"]


def asks_for_answer(words: bytes) -> bool:
    """The words of a unit of requests have a whole READ or FETCH_ADD in front of what ends the unit."""
    at = 0
    while len(words) - at >= 16:
        text = words[at : at + 16]
        header = Packet(0, 0, text).header
        opcode = header["opcode"]
        if not any(text) or opcode > PacketOpcode.SIGNAL or header["flags"] > 7 or header["length_bytes"] > 512:
            return False
        size = 16 + body_length(header)
        at += size + -size % 4
        if opcode in (PacketOpcode.READ, PacketOpcode.FETCH_ADD) and at <= len(words):
            return True
    return False


class RouteTable:
    """Endpoint -> output, and why a unit to it is refused."""

    def __init__(self, cfg: SwitchConfig):
        self.ports = cfg.ports
        self.routes = {e: e for e in range(cfg.ports)}

    def write(self, endpoint: int, output: int, there: bool) -> None:
        """A row of the table."""
        self.routes.pop(endpoint, None)
        if there and output < self.ports:
            self.routes[endpoint] = output

    def read(self, endpoint: int) -> int:
        """The row as the registers show it: bit 7 there is a route, bits 6:0 its output; 0 of a hole."""
        output = self.routes.get(endpoint)
        return 0 if output is None else 0x80 | output

    def look_up(self, endpoint: int, same: int, alive: int) -> tuple[int | None, str]:
        """The output, if there is one, and the reason of a refusal: hole, foreign, dead, or none."""
        output = self.routes.get(endpoint)
        if output is None:
            return None, "hole"
        if not same >> output & 1:
            return output, "foreign"
        return output, "" if alive >> output & 1 else "dead"
