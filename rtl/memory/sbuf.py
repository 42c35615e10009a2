"""SBUF: two-dimensional memory of partitions, shared by engines and DMA movers."""

from collections.abc import Sequence

from amaranth.hdl import Cat, Const, DomainRenamer, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.memory_port import QUADRANTS, SbufMoverSignature, SbufReadSignature, SbufWriteSignature
from rtl.base.placed import Placed
from rtl.contract.config import Config
from rtl.memory.sbuf_adder import SbufAdder
from rtl.memory.sbuf_arbiter import SbufArbiter
from rtl.memory.sbuf_group import SbufGroup
from rtl.memory.sbuf_sums import SbufSums

__all__ = ["ALL_QUADRANTS", "Sbuf"]

ALL_QUADRANTS = (1 << QUADRANTS) - 1
"""Of the masks in `reach`."""


class Sbuf(wiring.Component):
    """Read ports and write ports of engines in order of priority, and a port `mover[e]` per DMA engine.

    Row group g of the tensor engine reads at `read_moving[g]` and `read_stationary[g]`, and asks for no quadrant
    outside the mask `reach[g]`; each of `engines` has a `read_{name}` and a `write_{name}`.
    Banks have one read and one write port, so reads and writes never meet. Who waits for whom, and how
    long at most: docs/memory.md. `refused` pulses for each cycle in which a valid request is not
    ready: read ports, write ports, mover reads, mover writes, old bytes of sums, from bit 0; `refused_names` lists
    them, ports of an array by one name. What movers add, if there are sbuf.adders, runs in `add_domain`, which must
    have an edge at the end of every cycle with `adding`; `form` is that of the adders (Fp32AddLanes). Reset: the
    contents stay.
    """

    def __init__(
        self,
        cfg: Config,
        reach: Sequence[int] = (ALL_QUADRANTS,),
        engines: tuple[str, ...] = ("vector", "scalar", "gpsimd"),
        add_domain: str = "sync",
        form: str = "structural",
    ):
        self.cfg = cfg
        self.reach = tuple(reach)
        self.engines = engines
        self.add_domain = add_domain
        self.form = form
        feeds = len(self.reach)
        movers = cfg.dma.engines
        self.refused_names = (
            *("read_moving",) * feeds,
            *("read_stationary",) * feeds,
            *(f"read_{name}" for name in engines),
            *(f"write_{name}" for name in engines),
            *("mover_read",) * movers,
            *("mover_write",) * movers,
            *("mover_add",) * movers * cfg.sbuf.adders,
        )
        super().__init__(
            {
                "read_moving": In(SbufReadSignature(cfg)).array(feeds),
                "read_stationary": In(SbufReadSignature(cfg)).array(feeds),
                **{f"read_{name}": In(SbufReadSignature(cfg)) for name in engines},
                **{f"write_{name}": In(SbufWriteSignature(cfg)) for name in engines},
                "mover": In(SbufMoverSignature(cfg)).array(movers),
                "refused": Out(len(self.refused_names)),
                "adding": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        banks = cfg.sbuf.banks
        engines = cfg.dma.engines
        reads = [*self.read_moving, *self.read_stationary, *(getattr(self, f"read_{name}") for name in self.engines)]
        reach = [*self.reach, *self.reach, *(ALL_QUADRANTS for _ in self.engines)]
        writes = [getattr(self, f"write_{name}") for name in self.engines]
        movers = self.mover
        adders: list[Placed] = []
        sums: list[Placed] = []
        for e in range(engines if cfg.sbuf.adders else 0):
            adder = Placed("sbuf_adder", lambda: SbufAdder(cfg), faults=True)
            m.submodules[f"adder_{e}"] = DomainRenamer(self.add_domain)(adder)
            lanes = Placed("sbuf_sums", lambda: SbufSums(self.form), faults=True)
            m.submodules[f"sums_{e}"] = DomainRenamer(self.add_domain)(lanes)
            adders.append(adder)
            sums.append(lanes)

        m.submodules.read_arbiter = reader = SbufArbiter(
            cfg, len(reads), "read", adds=cfg.sbuf.adders, add_domain=self.add_domain
        )
        m.submodules.write_arbiter = writer = SbufArbiter(cfg, len(writes), "write")
        for arbiter, ports, way in ((reader, reads, "read"), (writer, writes, "write")):
            for n, port in enumerate(ports):
                m.d.comb += [
                    arbiter.valid[n].eq(port.valid),
                    arbiter.quadrants[n].eq(port.quadrants),
                    arbiter.words[n].eq(port.word),
                    port.ready.eq(arbiter.grant[n]),
                ]
            for e, mover in enumerate(movers if arbiter is reader or not adders else adders):
                m.d.comb += [
                    arbiter.mover_valid[e].eq(getattr(mover, f"{way}_valid")),
                    arbiter.mover_pair[e].eq(getattr(mover, f"{way}_pair")),
                    getattr(mover, f"{way}_ready").eq(arbiter.mover_grant[e]),
                ]
        for e, adder in enumerate(adders):
            m.d.comb += [
                reader.add_valid[e].eq(adder.look_valid),
                reader.add_pair[e].eq(adder.look_pair),
                adder.look_ready.eq(reader.add_grant[e]),
            ]
        m.d.comb += self.refused.eq(
            Cat(
                reader.refused[: len(reads)],
                writer.refused[: len(writes)],
                reader.refused[len(reads) : len(reads) + engines],
                writer.refused[len(writes) :],
                reader.refused[len(reads) + engines :],
            )
        )

        # which bank each read port gets its data from, one cycle later
        selects: list[Signal] = []
        for n, port in enumerate(reads):
            select = Signal(QUADRANTS * banks, name=f"select_{n}")
            m.d.sync += [select.eq(reader.use[n]), port.data_valid.eq(port.valid & port.ready)]
            selects.append(select)

        each = cfg.partitions // engines
        depth = cfg.sbuf.partition_bytes // 8 // banks
        name = f"sbuf_group_{each}x{banks}x{depth}_{len(reads)}r{len(writes)}w"
        slices: list[list[Value]] = [[] for _ in reads]
        if adders:
            m.d.comb += self.adding.eq(Cat(adder.adding for adder in adders).any())
        for e, mover in enumerate(movers):
            source = adders[e] if adders else mover
            group = Placed(name, lambda: SbufGroup(cfg, len(reads), len(writes)), faults=True)
            m.submodules[f"group_{e}"] = group
            q = e * QUADRANTS // engines
            mine = slice(q * banks, (q + 1) * banks)
            wide = slice(64 * each * e, 64 * each * (e + 1))
            m.d.comb += [
                group.read_banks.eq(self._any(reader, mine)),
                group.read_rows.eq(Cat(reader.rows[at] for at in range(q * banks, (q + 1) * banks))),
                group.write_rows.eq(Cat(writer.rows[at] for at in range(q * banks, (q + 1) * banks))),
                group.mover_read.eq(mover.read_valid & mover.read_ready),
                group.mover_read_lane.eq(mover.read_lane),
                group.mover_read_pair.eq(mover.read_pair),
                mover.read_data.eq(group.mover_read_data),
                group.mover_write.eq(source.write_valid & source.write_ready),
                group.mover_write_lane.eq(source.write_lane),
                group.mover_write_pair.eq(source.write_pair),
                group.mover_write_data.eq(mover.write_data),
                group.mover_write_bytes.eq(source.write_bytes),
            ]
            if adders:
                self._add(m, mover, adders[e], sums[e], group)
            m.d.sync += mover.read_data_valid.eq(mover.read_valid & mover.read_ready)
            for n, quadrants in enumerate(reach):
                if quadrants >> q & 1:
                    m.d.comb += group.select[n].eq(selects[n][mine])
                    slices[n].append(group.data[n])
                else:
                    slices[n].append(Const(0, 64 * each))
            for n, port in enumerate(writes):
                m.d.comb += [
                    group.write_banks[n].eq(writer.use[n][mine]),
                    group.write_data[n].eq(port.data[wide]),
                    group.write_bytes[n].eq(port.bytes),
                    group.write_partitions[n].eq(port.partitions[each * e : each * (e + 1)]),
                ]
        for port, parts in zip(reads, slices, strict=True):
            m.d.comb += port.data.eq(Cat(*parts))
        return m

    @staticmethod
    def _add(m: Module, mover: wiring.PureInterface, adder: Placed, lanes: Placed, group: Placed) -> None:
        """An adder between its mover, the lanes that add and the group of banks."""
        m.d.comb += [
            group.mover_sums.eq(adder.sums),
            group.mover_sum.eq(adder.write_sum),
            group.add_read.eq(adder.look_valid & adder.look_ready),
            group.add_read_lane.eq(adder.look_lane),
            group.add_read_pair.eq(adder.look_pair),
            lanes.valid.eq(adder.sum_valid),
            lanes.add.eq(adder.sum_add),
            lanes.new.eq(adder.sum_new),
            lanes.old.eq(group.add_read_data),
            adder.sum.eq(lanes.out),
            *(
                getattr(adder.mover, f"write_{name}").eq(getattr(mover, f"write_{name}"))
                for name in ("valid", "lane", "pair", "data", "bytes", "add", "last")
            ),
            mover.write_ready.eq(adder.mover.write_ready),
            mover.write_done.eq(adder.mover.write_done),
        ]

    @staticmethod
    def _any(arbiter: SbufArbiter, mine: slice) -> Signal:
        """Banks of a quadrant that any engine port uses."""
        used = arbiter.use[0][mine]
        for n in range(1, arbiter.ports):
            used |= arbiter.use[n][mine]
        return used
