"""SBUF: two-dimensional memory of partitions, shared by engines and DMA movers."""

from collections.abc import Mapping

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.base.memory_port import QUADRANTS, SbufMoverSignature, SbufReadSignature, SbufWriteSignature
from rtl.base.placed import Placed
from rtl.contract.config import Config
from rtl.memory.sbuf_arbiter import SbufArbiter
from rtl.memory.sbuf_group import SbufGroup

__all__ = ["Sbuf"]


class Sbuf(wiring.Component):
    """Read ports and write ports of engines in order of priority, and a mover port per DMA engine.

    Banks have one read and one write port, so reads and writes never meet. Who waits for whom, and how
    long at most: docs/memory.md. `refused` pulses for each cycle in which a valid request is not
    ready: read ports, write ports, mover reads, mover writes, from bit 0; `refused_names` lists them.
    `reach`: read ports that never ask for quadrants outside this mask. Reset: the contents stay.
    """

    def __init__(
        self,
        cfg: Config,
        read_ports: tuple[str, ...] = ("moving", "stationary", "vector", "scalar", "gpsimd"),
        write_ports: tuple[str, ...] = ("vector", "scalar", "gpsimd"),
        reach: Mapping[str, int] | None = None,
    ):
        self.cfg = cfg
        self.read_ports = read_ports
        self.write_ports = write_ports
        self.reach = reach or {}
        movers = range(cfg.dma.engines)
        self.refused_names = (
            *(f"read_{name}" for name in read_ports),
            *(f"write_{name}" for name in write_ports),
            *(f"mover{e}_read" for e in movers),
            *(f"mover{e}_write" for e in movers),
        )
        super().__init__(
            {
                **{f"read_{name}": In(SbufReadSignature(cfg)) for name in read_ports},
                **{f"write_{name}": In(SbufWriteSignature(cfg)) for name in write_ports},
                **{f"mover{e}": In(SbufMoverSignature(cfg)) for e in movers},
                "refused": Out(len(self.refused_names)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        banks = cfg.sbuf.banks
        engines = cfg.dma.engines
        reads = [getattr(self, f"read_{name}") for name in self.read_ports]
        writes = [getattr(self, f"write_{name}") for name in self.write_ports]
        movers = [getattr(self, f"mover{e}") for e in range(engines)]

        m.submodules.read_arbiter = reader = SbufArbiter(cfg, len(reads), "read")
        m.submodules.write_arbiter = writer = SbufArbiter(cfg, len(writes), "write")
        for arbiter, ports, way in ((reader, reads, "read"), (writer, writes, "write")):
            for n, port in enumerate(ports):
                m.d.comb += [
                    arbiter.valid[n].eq(port.valid),
                    arbiter.quadrants[n].eq(port.quadrants),
                    arbiter.words[n].eq(port.word),
                    port.ready.eq(arbiter.grant[n]),
                ]
            for e, mover in enumerate(movers):
                m.d.comb += [
                    arbiter.mover_valid[e].eq(getattr(mover, f"{way}_valid")),
                    arbiter.mover_pair[e].eq(getattr(mover, f"{way}_pair")),
                    getattr(mover, f"{way}_ready").eq(arbiter.mover_grant[e]),
                ]
        m.d.comb += self.refused.eq(
            Cat(
                reader.refused[: len(reads)],
                writer.refused[: len(writes)],
                reader.refused[len(reads) :],
                writer.refused[len(writes) :],
            )
        )

        # which bank each read port gets its data from, one cycle later
        selects: list[Signal] = []
        for n, port in enumerate(reads):
            select = Signal(QUADRANTS * banks, name=f"select_{n}")
            m.d.sync += [select.eq(reader.use[n]), port.data_valid.eq(port.valid & port.ready)]
            selects.append(select)

        lanes = cfg.partitions // engines
        depth = cfg.sbuf.partition_bytes // 8 // banks
        name = f"sbuf_group_{lanes}x{banks}x{depth}_{len(reads)}r{len(writes)}w"
        slices: list[list[Value]] = [[] for _ in reads]
        for e, mover in enumerate(movers):
            group = Placed(name, lambda: SbufGroup(cfg, len(reads), len(writes)), faults=True)
            m.submodules[f"group_{e}"] = group
            q = e * QUADRANTS // engines
            mine = slice(q * banks, (q + 1) * banks)
            wide = slice(64 * lanes * e, 64 * lanes * (e + 1))
            m.d.comb += [
                group.read_banks.eq(self._any(reader, mine)),
                group.read_rows.eq(Cat(reader.rows[at] for at in range(q * banks, (q + 1) * banks))),
                group.write_rows.eq(Cat(writer.rows[at] for at in range(q * banks, (q + 1) * banks))),
                group.mover_read.eq(mover.read_valid & mover.read_ready),
                group.mover_read_lane.eq(mover.read_lane),
                group.mover_read_pair.eq(mover.read_pair),
                mover.read_data.eq(group.mover_read_data),
                group.mover_write.eq(mover.write_valid & mover.write_ready),
                group.mover_write_lane.eq(mover.write_lane),
                group.mover_write_pair.eq(mover.write_pair),
                group.mover_write_data.eq(mover.write_data),
                group.mover_write_bytes.eq(mover.write_bytes),
            ]
            m.d.sync += mover.read_data_valid.eq(mover.read_valid & mover.read_ready)
            for n, reader_name in enumerate(self.read_ports):
                if self.reach.get(reader_name, -1) >> q & 1:
                    m.d.comb += getattr(group, f"select{n}").eq(selects[n][mine])
                    slices[n].append(getattr(group, f"data{n}"))
                else:
                    slices[n].append(Const(0, 64 * lanes))
            for n, port in enumerate(writes):
                m.d.comb += [
                    getattr(group, f"write_banks{n}").eq(writer.use[n][mine]),
                    getattr(group, f"write_data{n}").eq(port.data[wide]),
                    getattr(group, f"write_bytes{n}").eq(port.bytes),
                    getattr(group, f"write_partitions{n}").eq(port.partitions[lanes * e : lanes * (e + 1)]),
                ]
        for port, parts in zip(reads, slices, strict=True):
            m.d.comb += port.data.eq(Cat(*parts))
        return m

    @staticmethod
    def _any(arbiter: SbufArbiter, mine: slice) -> Signal:
        """Banks of a quadrant that any engine port uses."""
        used = arbiter.use[0][mine]
        for n in range(1, arbiter.ports):
            used |= arbiter.use[n][mine]
        return used
