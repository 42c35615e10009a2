"""PSUM: banks of FP32 rows that add on write."""

from amaranth.hdl import DomainRenamer, Module, Mux, Signal, ValueLike
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.base.memory_port import PsumAccumulateSignature, PsumReadSignature
from rtl.base.plant import planted
from rtl.base.ram import Ram
from rtl.contract.config import Config
from rtl.memory.psum_adder import MINUS_ZERO, PsumAdder

__all__ = ["Psum"]


class Psum(wiring.Component):
    """One accumulating writer and read ports of engines in order of priority.

    A bank does one read and one write a cycle. The writer is never refused: an add takes the read port
    of its bank in the cycle it comes, and a reader of that bank waits. `refused` has a bit for each read
    port: valid, not ready. The adders run in the clock domain `add_domain`, which must run from a
    `valid` until the row has committed (timing.PSUM_ADD_CYCLES). `form` is that of the
    adders (numeric.add_lanes). Reset: the contents stay.
    """

    FAULTS = {
        1: "an add overwrites",
        2: "partitions outside the mask are written",
        3: "a reader takes the bank that an add reads",
        4: "the read data come from the bank of the cycle before",
        5: "a refused reader is not reported",
    }

    def __init__(
        self,
        cfg: Config,
        read_ports: tuple[str, ...] = ("vector", "scalar"),
        add_domain: str = "sync",
        form: str = "structural",
        plant: ValueLike = 0,
    ):
        self.cfg = cfg
        self.read_ports = read_ports
        self.add_domain = add_domain
        self.form = form
        self.plant = plant
        super().__init__(
            {
                "accumulate": In(PsumAccumulateSignature(cfg)),
                **{f"read_{name}": In(PsumReadSignature(cfg)) for name in read_ports},
                "refused": Out(len(read_ports)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        banks = cfg.psum.banks
        rows = cfg.psum.bank_bytes // 4
        row_bits = ceil_log2(rows)
        readers = [getattr(self, f"read_{name}") for name in self.read_ports]
        adder = PsumAdder(cfg, self.form, plant=self.plant)
        m.submodules.adder = DomainRenamer(self.add_domain)(adder)
        rams = [Ram(32 * cfg.partitions, rows, granule=32) for _ in range(banks)]
        for b, ram in enumerate(rams):
            m.submodules[f"bank{b}"] = ram

        writer = self.accumulate
        adding = writer.valid & writer.accumulate
        writer_bank = writer.element[row_bits:]
        m.d.comb += [
            adder.valid.eq(writer.valid),
            adder.element.eq(writer.element),
            adder.accumulate.eq(writer.accumulate),
            adder.partitions.eq(writer.partitions),
            adder.data.eq(writer.data),
        ]

        taken = Signal(banks)
        m.d.comb += taken.eq(Mux(adding & ~planted(self.plant, 3), 1 << writer_bank, 0))
        for n, port in enumerate(readers):
            bank = port.element[row_bits:]
            free = Signal(banks, name=f"free_{self.read_ports[n]}")
            m.d.comb += free.eq(~taken)
            m.d.comb += port.ready.eq(free.bit_select(bank, 1))
            m.d.comb += self.refused[n].eq(port.valid & ~port.ready & ~planted(self.plant, 5))
            before = taken
            taken = Signal(banks, name=f"taken_{self.read_ports[n]}")
            m.d.comb += taken.eq(before | Mux(port.valid, 1 << bank, 0))
            accepted = port.valid & port.ready
            of = Signal(range(banks), name=f"bank_of_{self.read_ports[n]}")
            m.d.sync += port.data_valid.eq(accepted)
            with m.If(accepted):
                m.d.sync += of.eq(bank)
            shown = Signal.like(of, name=f"shown_{self.read_ports[n]}")
            m.d.comb += shown.eq(of)
            with m.If(planted(self.plant, 4)):
                late = Signal.like(of, name=f"late_{self.read_ports[n]}")
                m.d.sync += late.eq(of)
                m.d.comb += shown.eq(late)
            with m.If(port.data_valid):  # wide: nothing moves without need
                with m.Switch(shown):
                    for b, ram in enumerate(rams):
                        with m.Case(b):
                            m.d.comb += port.data.eq(ram.read_data)

        for b, ram in enumerate(rams):
            add_here = adding & (writer_bank == b)
            enable = add_here
            address = Signal(row_bits, name=f"address{b}")
            m.d.comb += address.eq(writer.element)
            for port in readers:
                mine = port.valid & port.ready & (port.element[row_bits:] == b)
                enable = enable | mine
                with m.If(mine):
                    m.d.comb += address.eq(port.element)
            write_here = adder.write_valid & (adder.write_element[row_bits:] == b)
            m.d.comb += [
                ram.read_en.eq(enable),
                ram.read_address.eq(address),
                ram.write_en.eq(write_here),
                ram.write_address.eq(adder.write_element),
                ram.write_mask.eq(adder.write_partitions),
                ram.write_data.eq(adder.write_data),
            ]
        old = Signal(32 * cfg.partitions, init=sum(MINUS_ZERO << 32 * p for p in range(cfg.partitions)))
        with m.If(adder.adds):
            with m.Switch(adder.old_bank):
                for b, ram in enumerate(rams):
                    with m.Case(b):
                        m.d.comb += old.eq(ram.read_data)
        m.d.comb += adder.old.eq(old)
        return m
