"""A row of the crossbar: what an input buffer shows the scheduler, and what it is told."""

from amaranth.hdl import Module
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.contract.switch_config import SwitchConfig
from rtl.switch.beat import transfer_beat
from rtl.switch.input.ingress import Ingress

__all__ = ["connect_row", "row_side"]

_NAMES = {"unit_queue": "queue", "departs": "o_valid", "departure": "o"}  # here, and of Ingress


def row_side(cfg: SwitchConfig) -> dict[str, wiring.Member]:
    """Members of whoever has an Ingress inside. `unit_queue`, `departs`, `departure`: its `queue`, `o_valid`, `o`."""
    queues = range(cfg.link.queues)
    return {
        "slot": In(1),
        "start": In(1),
        "first": In(1),
        "now": In(1),
        "out_port": In(range(cfg.outputs)),
        "unit_queue": In(queues),
        "lists": Out(cfg.outputs * cfg.link.queues),
        "lengths": Out(data.ArrayLayout(range(cfg.length_cap_flits + 1), cfg.outputs)),
        "more": Out(1),
        "lone": Out(1),
        "lone_port": Out(range(cfg.outputs)),
        "lone_queue": Out(queues),
        "ends": Out(1),
        "departs": Out(1),
        "departure": Out(transfer_beat(cfg.link)),
    }


def connect_row(m: Module, outer: wiring.Component, ingress: Ingress) -> None:
    """Give the row to the user of `outer`."""
    for name, member in row_side(ingress.cfg).items():
        mine, its = getattr(outer, name), getattr(ingress, _NAMES.get(name, name))
        m.d.comb += its.eq(mine) if member.flow == In else mine.eq(its)
