"""The switch: ports, what decides who sends to whom, and the crossbar between them."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.placed import Placed
from rtl.contract.switch_config import SwitchConfig
from rtl.link.beat import beat_layout
from rtl.switch.bypass import Bypass
from rtl.switch.crossbar import Crossbar
from rtl.switch.registers import Registers
from rtl.switch.responder import Responder
from rtl.switch.scheduling.scheduler import Scheduler
from rtl.switch.switch_port import SwitchPort

__all__ = ["Switch"]

_FLAT_OUTPUTS = 24
"""Up to here Verilator compiles all ports as one with the rest. That runs at twice the speed: a port apart is evaluated
again whenever one of its pins changes, up to seven times a cycle. Beyond, compiling 72 copies would take too long."""


class Switch(wiring.Component):
    """`cfg.ports` links, coded flits each way; lanes are outside.

    By port: `i`, `i_refuse`, `o`, `restart`, `disabled`, `aligned`, `realign`, `align`, `flip`, `state`. Port p starts
    with session `session_init` + 257 p. `write` with `address` and `data`: a register; `read_data` shows the one at
    `address` two cycles later (contract.switch_registers).
    """

    def __init__(self, cfg: SwitchConfig, form: str = "native"):
        self.cfg = cfg
        self.form = form
        p = cfg.ports
        beat = beat_layout(cfg.link)
        super().__init__(
            {
                "session_init": In(16),
                "restart": In(p),
                "disabled": In(p),
                "aligned": In(p),
                "realign": In(p),
                "align": Out(p),
                "i_valid": In(p),
                "i": In(data.ArrayLayout(beat, p)),
                "i_refuse": In(p),
                "o": Out(stream.Signature(beat)).array(p),
                "flip": In(p),
                "state": Out(data.ArrayLayout(4, p)),
                "write": In(1),
                "address": In(16),
                "data": In(64),
                "read_data": Out(64),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        n, p, queues = cfg.outputs, cfg.ports, cfg.link.queues
        m.submodules.scheduler = scheduler = Scheduler(cfg)
        m.submodules.bypass = bypass = Bypass(cfg)
        m.submodules.crossbar = crossbar = Crossbar(cfg)
        m.submodules.registers = registers = Registers(cfg)
        m.submodules.responder = responder = Responder(cfg)
        ports = []
        for k in range(p):
            ports.append(self._port())
            m.submodules[f"port_{k}"] = ports[k]
        rows = [*ports, responder]

        # The slots that all share
        phase = Signal(range(cfg.slot_cycles))
        slot, last = Signal(), Signal()
        m.d.sync += phase.eq(Mux(last, 0, phase + 1))
        m.d.comb += [slot.eq(phase == 0), last.eq(phase == cfg.slot_cycles - 1), scheduler.slot.eq(slot)]

        # What inputs hold, as it was a cycle ago; a unit that is alone at its input as it is now, to begin at once.
        waiting = [Signal(n * queues, name=f"waiting_{k}") for k in range(cfg.inputs)]
        m.d.sync += [waiting[k].eq(scheduler.lists[k]) for k in range(cfg.inputs)]
        alive = Signal(n)
        m.d.comb += [
            alive.eq(Cat(*(port.alive for port in ports), Const(1, 1))),
            bypass.slot.eq(slot),
            *(bypass.lists[k].eq(waiting[k]) for k in range(cfg.inputs)),
            bypass.lone.eq(Cat(row.lone for row in rows)),
            bypass.sends.eq(scheduler.start),
            bypass.takes.eq(scheduler.valid),
            bypass.ends.eq(Cat(row.ends for row in rows)),
            bypass.ready.eq(Cat(*(port.idle_ready for port in ports), Const(0, queues))),
            scheduler.blocked_inputs.eq(bypass.blocked_inputs),
            scheduler.blocked_outputs.eq(bypass.blocked_outputs),
            crossbar.tune.eq(Mux(slot, scheduler.valid, 0) | bypass.tunes),
            crossbar.mute.eq(Mux(slot, ~bypass.busy_outputs, 0) | bypass.mutes),
        ]
        for k, row in enumerate(rows):
            begins = bypass.starts[k]
            with m.If(row.lone):
                m.d.comb += bypass.lists[k].eq(1 << (row.lone_port * queues + row.lone_queue))
            m.d.comb += [
                scheduler.lists[k].eq(row.lists),
                scheduler.more[k].eq(row.more),
                *(scheduler.lengths[k][o].eq(row.lengths[o]) for o in range(n)),
                row.slot.eq(slot),
                row.start.eq(scheduler.start[k]),
                row.first.eq(scheduler.first[k]),
                row.now.eq(begins),
                row.out_port.eq(Mux(begins, bypass.out_port[k], scheduler.out_port[k])),
                row.unit_queue.eq(Mux(begins, bypass.queue[k], scheduler.queue[k])),
                crossbar.i_valid[k].eq(row.departs),
                crossbar.i[k].eq(row.departure),
                row.alive_outputs.eq(alive),
                row.same_outputs.eq(registers.same[k]),
                row.route_write.eq(registers.route_write),
                row.route_endpoint.eq(registers.route_endpoint),
                row.route.eq(registers.route),
            ]
        for o in range(n):
            m.d.comb += crossbar.source[o].eq(Mux(bypass.tunes[o], bypass.source[o], scheduler.select[o]))

        # Units for outputs without a session, and reads that were refused: the responder takes them, one at a time.
        m.d.comb += [
            responder.dead.eq(~alive),
            responder.granted.eq(Mux(slot, scheduler.granted, 0)),
            responder.arrives.eq(crossbar.o_valid),
            responder.arrivals.eq(crossbar.o),
        ]
        for k, port in enumerate(ports):
            m.d.comb += [
                scheduler.ready[k * queues : (k + 1) * queues].eq(
                    Mux(alive[k], port.ready, responder.offers[k].replicate(queues))
                ),
                port.granted.eq((slot & scheduler.granted[k]) | bypass.tunes[k]),
                port.doomed.eq(responder.takes[k]),
                port.granted_queue.eq(Mux(bypass.tunes[k], bypass.tuned_queue[k], scheduler.granted_queue[k])),
                port.arrives.eq(crossbar.o_valid[k]),
                port.arrival.eq(crossbar.o[k]),
            ]
        m.d.comb += scheduler.ready[p * queues :].eq(responder.offers[p].replicate(queues))

        for k, port in enumerate(ports):
            wiring.connect(m, port.o, wiring.flipped(self.o[k]))
            m.d.comb += [
                port.session_init.eq(self.session_init + 257 * k),
                *(getattr(port, name).eq(getattr(self, name)[k]) for name in ("restart", "aligned", "realign", "flip")),
                port.disabled.eq(self.disabled[k] | registers.disabled[k]),
                self.align[k].eq(port.align),
                port.i_valid.eq(self.i_valid[k]),
                port.i.eq(self.i[k]),
                port.i_refuse.eq(self.i_refuse[k]),
                self.state[k].eq(port.state),
                port.partition.eq(registers.partition[k]),
                port.address.eq(self.address[: len(port.address)]),
                registers.values[k].eq(port.value),
            ]
        m.d.comb += [
            registers.write.eq(self.write),
            registers.address.eq(self.address),
            registers.data.eq(self.data),
            self.read_data.eq(registers.read_data),
            responder.read_endpoint.eq(registers.read_endpoint),
            registers.read_route.eq(responder.read_route),
            registers.answered.eq(responder.answered),
            registers.unsent_flits.eq(responder.unsent_flits),
            registers.bad_parity.eq(responder.bad_parity),
        ]
        return m

    def _port(self) -> Placed:
        """All ports are one module."""
        name = f"switch_port_{self.cfg.outputs}x{self.cfg.link.lanes}_{self.form}"
        flat = self.cfg.outputs <= _FLAT_OUTPUTS
        return Placed(name, lambda: SwitchPort(self.cfg, self.form), hier_block=not flat, faults=True)
