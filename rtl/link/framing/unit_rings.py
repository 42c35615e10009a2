"""The units that wait in the queues of a sender: what is known of each, oldest first."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.base.fault import fault
from rtl.contract.link import UNIT_FLITS_MAX
from rtl.contract.link_config import LinkConfig
from rtl.link.framing.framing import unit_layout
from rtl.link.framing.placing import place_layout, slots_of

__all__ = ["UnitRings", "waiting_layout"]


def waiting_layout(cfg: LinkConfig) -> data.StructLayout:
    """A unit that waits; `row`, `lane`: the place behind its last word."""
    place = place_layout(cfg)
    return data.StructLayout({"unit": unit_layout(cfg), "row": place["row"].shape, "lane": place["lane"].shape})


class UnitRings(wiring.Component):
    """A ring of units for each queue; all records lie in one memory.

    `enter`: `record` is the youngest unit of `queue` from now on, in place of the youngest one with `joins`, else
    behind it. `youngest`, `units` (how many wait) are those of `queue`, from registers. While `grows` its youngest unit
    cannot be taken. `valid`, `flits`: the oldest unit of each queue. `take` removes that of `taken`; `unit` shows it
    from the next cycle to the next `take`.
    """

    def __init__(self, cfg: LinkConfig):
        self.cfg = cfg
        super().__init__(
            {
                "queue": In(range(cfg.queues)),
                "youngest": Out(waiting_layout(cfg)),
                "units": Out(range(slots_of(cfg) + 1)),
                "grows": In(1),
                "enter": In(1),
                "joins": In(1),
                "record": In(waiting_layout(cfg)),
                "valid": Out(cfg.queues),
                "flits": Out(data.ArrayLayout(range(UNIT_FLITS_MAX + 1), cfg.queues)),
                "take": In(1),
                "taken": In(range(cfg.queues)),
                "unit": Out(unit_layout(cfg)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        slots = slots_of(cfg)

        def each(shape: object, name: str) -> Array:
            return Array(Signal(shape, name=f"{name}_{n}") for n in range(cfg.queues))

        def after(at: Value) -> Value:
            return Mux(at == slots - 1, 0, at + 1)

        count = each(range(slots + 1), "units")
        oldest = each(range(slots), "oldest")
        newest = each(range(slots), "newest")  # where the next unit goes
        head_flits = each(range(UNIT_FLITS_MAX + 1), "head_flits")
        m.submodules.records = records = Memory(
            shape=waiting_layout(cfg), depth=cfg.queues << ceil_log2(slots), init=[]
        )
        store = records.write_port()
        youngest = records.read_port(domain="comb")
        first = records.read_port(domain="comb")
        second = records.read_port(domain="comb")
        q, asked = self.queue, self.taken
        before = Signal(range(slots), name="newest_before")
        place = Signal(range(slots))
        following = Signal(range(slots))
        m.d.comb += [
            before.eq(Mux(newest[q] == 0, slots - 1, newest[q] - 1)),
            youngest.addr.eq(Cat(before, q)),
            self.youngest.eq(youngest.data),
            self.units.eq(count[q]),
            place.eq(Mux(self.joins, before, newest[q])),
            store.en.eq(self.enter),
            store.addr.eq(Cat(place, q)),
            store.data.eq(self.record),
            following.eq(after(oldest[asked])),
            first.addr.eq(Cat(oldest[asked], asked)),
            second.addr.eq(Cat(following, asked)),
        ]
        with m.If(self.take):
            m.d.sync += [
                self.unit.eq(first.data.unit),
                oldest[asked].eq(following),
                head_flits[asked].eq(second.data.unit.flits),
            ]
        with m.If(self.enter):
            with m.If(~self.joins):
                m.d.sync += newest[q].eq(after(newest[q]))
            left = count[q] - (self.take & (asked == q))
            with m.If(left == self.joins):
                m.d.sync += head_flits[q].eq(self.record.unit.flits)
        for n in range(cfg.queues):
            enters = self.enter & ~self.joins & (q == n)
            grows = self.grows & (q == n) & ~fault("a unit can be taken while a packet is being appended to it")
            m.d.sync += count[n].eq(count[n] + enters - (self.take & (asked == n)))
            m.d.comb += [
                self.valid[n].eq((count[n] != 0) & ~(grows & (count[n] == 1))),
                self.flits[n].eq(head_flits[n]),
            ]
        return m
