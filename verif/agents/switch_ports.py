"""Partners at all ports of a switch: plain Python links with the golden codec, a flit time each, each at its phase."""

from typing import Any

from rtl.contract.link import FLIT_BYTES, FLIT_INFO_BYTES, LinkState
from rtl.contract.switch_config import SwitchConfig
from verif.agents.bench import Bench
from verif.agents.linear_codec import coded
from verif.golden.link_partner import SILENCE, LinkPartner

__all__ = ["SwitchPorts"]


class SwitchPorts:
    """`run` lets cycles pass. `partners[p].send` queues flits, `partners[p].received` is what came out of port p.

    `damage`: share of flits that are refused, towards the switch and from it. `phases`: the cycle of a flit time in
    which each partner begins. The switch numbers its sessions from `session_init` on. A flit that it sends has the
    codes of its information, each bit of them, or, `spoiled`, none of these bits. `turned`: bits of `session_init` that
    are others than in tests of the same seed without it.
    """

    def __init__(self, bench: Bench, dut: Any, cfg: SwitchConfig, damage: float = 0.0, turned: int = 0):
        self.bench = bench
        self.dut = dut
        self.cfg = cfg
        self.damage = damage
        ports = cfg.ports
        self.partners = [LinkPartner(cfg.link, session_init=1000 + 17 * p) for p in range(ports)]
        self.phases = [int(bench.rng.integers(cfg.slot_cycles)) for _ in range(ports)]
        self.restart: set[int] = set()  # partners that begin again with their next flit
        self.late: set[int] = set()  # partners whose next flit begins a cycle late: another phase from then on
        self.deaf: set[int] = set()
        self.spoiled = [0] * ports  # flits from the switch with wrong codes, by port
        self.cycle = 0
        self.began: list[list[tuple[int, bytes]]] = [[] for _ in range(ports)]  # cycle and flit, towards the switch
        self.ended: list[list[tuple[int, bytes]]] = [[] for _ in range(ports)]  # and from it
        self._sending: list[bytes] = [SILENCE] * ports
        self._refuse = [False] * ports
        self._partly: list[bytes] = [b""] * ports
        self._since = [0] * ports
        self._heard: list[bytes | None] = [SILENCE] * ports
        self.session_init = int(bench.rng.integers(1 << 16)) ^ turned
        dut.session_init.value = self.session_init
        for name in ("restart", "disabled", "flip", "write", "address", "value"):
            getattr(dut, name).value = 0
        for name in ("valid", "first", "last", "refuse", "data"):
            getattr(dut, f"rx_{name}").value = 0

    async def run(self, cycles: int) -> None:
        """Let link cycles pass."""
        for _ in range(cycles):
            self._drive()
            await self.bench.edge
            self._sample()
            self.cycle += 1

    async def up(self) -> None:
        """Until all links are up at both ends."""
        for _ in range(200):
            await self.run(16 * self.cfg.slot_cycles)
            states = int(self.dut.state.value)
            there = all(states >> 4 * p & 15 == LinkState.UP for p in range(self.cfg.ports))
            if there and all(partner.state == LinkState.UP for partner in self.partners):
                return
        raise AssertionError(f"states {states:x}, partners {[p.state.name for p in self.partners]}")

    async def write(self, address: int, value: int) -> None:
        """A register of the switch."""
        self.dut.address.value, self.dut.value.value, self.dut.write.value = address, value, 1
        await self.run(1)
        self.dut.write.value = 0
        await self.run(1)

    async def read(self, address: int) -> int:
        """A register of the switch."""
        self.dut.address.value = address
        await self.run(3)
        return int(self.dut.read_value.value)

    def _drive(self) -> None:
        cfg, link = self.cfg, self.cfg.link
        for p in [p for p in self.late if (self.cycle + self.phases[p]) % cfg.slot_cycles == 0]:
            self.late.discard(p)
            self.phases[p] -= 1
            self._sending[p] = SILENCE
        fresh = [p for p in range(cfg.ports) if (self.cycle + self.phases[p]) % cfg.slot_cycles == 0]
        if fresh:
            sent = []
            for p in fresh:
                sent.append(self.partners[p].flit(self._heard[p], restart=p in self.restart))
                self.restart.discard(p)
                self._heard[p] = SILENCE
            for p, info in zip(fresh, sent, strict=True):
                self._sending[p] = SILENCE if info == SILENCE else coded(info)
                self._refuse[p] = bool(self.bench.rng.random() < self.damage)
                if info != SILENCE:
                    self.began[p].append((self.cycle, self._sending[p]))
        valid = first = last = refuse = word = 0
        for p in range(cfg.ports):
            step, rest = divmod((self.cycle + self.phases[p]) % cfg.slot_cycles, link.beat_cycles)
            if self._sending[p] == SILENCE or rest:
                continue
            valid |= 1 << p
            first |= (step == 0) << p
            last |= (step == link.beats - 1) << p
            refuse |= self._refuse[p] << p
            part = self._sending[p][step * link.beat_bytes : (step + 1) * link.beat_bytes]
            word |= int.from_bytes(part, "little") << 8 * link.beat_bytes * p
        for name, value in zip(("valid", "first", "last", "refuse", "data"), (valid, first, last, refuse, word)):
            getattr(self.dut, f"rx_{name}").value = value

    def _sample(self) -> None:
        """What the ports showed in the cycle that ends with this edge."""
        link = self.cfg.link
        valid = int(self.dut.tx_valid.value)
        if not valid:
            return
        first, last = int(self.dut.tx_first.value), int(self.dut.tx_last.value)
        word = int(self.dut.tx_data.value).to_bytes(link.beat_bytes * self.cfg.ports, "little")
        for p in range(self.cfg.ports):
            if not valid >> p & 1:
                continue
            if first >> p & 1:
                self._partly[p], self._since[p] = b"", self.cycle
            self._partly[p] += word[p * link.beat_bytes : (p + 1) * link.beat_bytes]
            if last >> p & 1:
                flit = self._partly[p]
                assert len(flit) == FLIT_BYTES, f"port {p}: a flit of {len(flit)} bytes"
                self.ended[p].append((self._since[p], flit))
                info, codes = flit[:FLIT_INFO_BYTES], flit[FLIT_INFO_BYTES:]
                right = coded(info)[FLIT_INFO_BYTES:]
                spoiled = codes == bytes(255 - c for c in right)
                assert spoiled or codes == right, f"port {p}: codes {codes.hex()}, for its bytes {right.hex()}"
                self.spoiled[p] += spoiled
                refused = spoiled or p in self.deaf or self.bench.rng.random() < self.damage
                self._heard[p] = None if refused else info
