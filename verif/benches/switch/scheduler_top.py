"""The scheduler of a switch between registers, with as many pins as a chip could have."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.contract.switch_config import SwitchConfig
from rtl.switch.scheduling.scheduler import Scheduler

__all__ = ["SchedulerTop"]


class SchedulerTop(wiring.Component):
    """Lists and lengths of input `row` are written in every cycle; the other inputs go through a register.

    To measure the speed of the scheduler as it is inside a switch, where its inputs are registers, and to emit it
    for radices whose requests are more bits than a top may have as ports. `queues` is its output `queue`.
    """

    def __init__(self, cfg: SwitchConfig):
        self.cfg = cfg
        n, queues = cfg.inputs, cfg.link.queues
        by_queue = data.ArrayLayout(range(queues), n)
        by_input = data.ArrayLayout(range(n), n)
        super().__init__(
            {
                "slot": In(1),
                "row": In(range(n)),
                "lists": In(n * queues),
                "lengths": In(data.ArrayLayout(range(cfg.length_cap_flits + 1), n)),
                "more": In(n),
                "ready": In(n * queues),
                "blocked_inputs": In(n),
                "blocked_outputs": In(n),
                "start": Out(n),
                "first": Out(n),
                "out_port": Out(by_input),
                "queues": Out(by_queue),
                "valid": Out(n),
                "select": Out(by_input),
                "granted": Out(n),
                "granted_queue": Out(by_queue),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.scheduler = scheduler = Scheduler(self.cfg)
        for i in range(self.cfg.inputs):
            lists, lengths = Signal(len(self.lists), name=f"lists_{i}"), Signal(len(self.lengths.as_value()))
            with m.If(self.row == i):
                m.d.sync += [lists.eq(self.lists), lengths.eq(self.lengths)]
            m.d.comb += [scheduler.lists[i].eq(lists), scheduler.lengths[i].eq(lengths)]
        for name in ("slot", "more", "ready", "blocked_inputs", "blocked_outputs"):
            held = Signal.like(getattr(self, name), name=f"{name}_held")
            m.d.sync += held.eq(getattr(self, name))
            m.d.comb += getattr(scheduler, name).eq(held)
        for name in ("start", "first", "out_port", "valid", "select", "granted", "granted_queue"):
            m.d.comb += getattr(self, name).eq(getattr(scheduler, name))
        m.d.comb += self.queues.eq(scheduler.queue)
        return m
