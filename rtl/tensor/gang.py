"""Row groups that work on one row tile send its beats together."""

from amaranth.hdl import Cat, Const, Module, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.contract.config import Config

__all__ = ["Gang", "TILE_BITS", "is_first", "is_last", "together"]

TILE_BITS = 2


def _rank(cfg: Config) -> int:
    """Logarithm of the number of row groups, the finest tile."""
    return cfg.tensor.groups.bit_length() - 1


def together(cfg: Config, tile: Value, group: Value | int, other: int) -> Value:
    """Whether two row groups belong to one tile, where the rows are 2^`tile` tiles: the upper bits of both agree."""
    rank = _rank(cfg)
    a, b = Const(group, rank) if isinstance(group, int) else group, Const(other, rank)
    differ = [(a ^ b)[rank - k :].any() for k in range(1, rank + 1)]
    return ~Cat((tile == k) & differs for k, differs in enumerate(differ, 1)).any()


def is_first(cfg: Config, tile: Value, group: int) -> Value:
    """Whether no group north of this one belongs to its tile."""
    return ~together(cfg, tile, group, group - 1) if group else Const(1, 1)


def is_last(cfg: Config, tile: Value, group: int) -> Value:
    """Whether no group south of this one belongs to its tile."""
    return ~together(cfg, tile, group, group + 1) if group + 1 < cfg.tensor.groups else Const(1, 1)


class Gang(wiring.Component):
    """`go` to a group whose next beat all groups of that beat's tile are `willing` to send: each has the command with
    this `ticket` at hand. Combinational.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        groups = cfg.tensor.groups
        super().__init__(
            {
                "willing": In(groups),
                "ticket": In(data.ArrayLayout(8, groups)),
                "tile": In(data.ArrayLayout(TILE_BITS, groups)),
                "go": Out(groups),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        groups = range(self.cfg.tensor.groups)
        for g in groups:
            late = []
            for h in groups:
                if h == g:
                    continue
                same = (self.ticket[h] == self.ticket[g]) | fault(
                    "groups of a tile send what they have, of whatever command"
                )
                beside = together(self.cfg, self.tile[g], g, h) & ~fault(
                    "a group does not wait for the others of its tile"
                )
                late.append(beside & ~(self.willing[h] & same))
            m.d.comb += self.go[g].eq(self.willing[g] & ~Cat(*late).any())
        return m
