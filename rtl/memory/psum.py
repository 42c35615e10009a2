"""PSUM: banks of FP32 rows that add on write, and words that engines read and write."""

from amaranth.hdl import DomainRenamer, Module, Mux, Signal, Value, ValueLike
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.base.memory_port import PsumAccumulateSignature, PsumReadSignature, PsumWriteSignature
from rtl.base.plant import planted
from rtl.base.ram import Ram
from rtl.contract.config import Config
from rtl.memory.psum_adder import MINUS_ZERO, PsumAdder

__all__ = ["Psum"]

_HALVES = 2  # elements of a word


class Psum(wiring.Component):
    """One accumulating writer, and read and write ports of engines in order of priority.

    A bank does one read and one write a cycle. The writer of sums is never refused: an add takes the read port of
    its bank in the cycle it comes, a sum the write port of its bank in the cycle in which it commits; engines that
    want it wait. `refused` has a bit for each port, valid and not ready; `refused_names` lists them. The adders run
    in the clock domain `add_domain`, which must run from a `valid` until the row has committed
    (timing.PSUM_ADD_CYCLES). `form` is that of the adders (numeric.add_lanes). Reset: the contents stay.
    The even and the odd elements of a bank are a RAM each, so that adding touches only one of them.
    """

    FAULTS = {
        1: "an add overwrites",
        2: "partitions outside the mask are written",
        3: "a reader takes the bank that an add reads",
        4: "the read data come from the bank of the cycle before",
        5: "a refused reader is not reported",
        6: "an engine's write does not wait for the sum that commits in its bank",
        7: "an engine writes both elements of a word",
        8: "an engine writes all partitions",
        9: "a refused write is not reported",
    }

    def __init__(
        self,
        cfg: Config,
        ports: tuple[str, ...] = ("vector", "scalar"),
        add_domain: str = "sync",
        form: str = "structural",
        plant: ValueLike = 0,
    ):
        self.cfg = cfg
        self.ports = ports
        self.add_domain = add_domain
        self.form = form
        self.plant = plant
        self.refused_names = (*(f"read_{name}" for name in ports), *(f"write_{name}" for name in ports))
        super().__init__(
            {
                "accumulate": In(PsumAccumulateSignature(cfg)),
                **{f"read_{name}": In(PsumReadSignature(cfg)) for name in ports},
                **{f"write_{name}": In(PsumWriteSignature(cfg)) for name in ports},
                "refused": Out(len(self.refused_names)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        rows = cfg.psum.bank_bytes // (4 * _HALVES)
        self._row_bits = ceil_log2(rows)
        adder = PsumAdder(cfg, self.form, plant=self.plant)
        m.submodules.adder = DomainRenamer(self.add_domain)(adder)
        rams = [[Ram(32 * cfg.partitions, rows, granule=32) for _ in range(_HALVES)] for _ in range(cfg.psum.banks)]
        for b, pair in enumerate(rams):
            m.submodules[f"bank{b}_even"], m.submodules[f"bank{b}_odd"] = pair
        writer = self.accumulate
        m.d.comb += [
            adder.valid.eq(writer.valid),
            adder.element.eq(writer.element),
            adder.accumulate.eq(writer.accumulate),
            adder.partitions.eq(writer.partitions),
            adder.data.eq(writer.data),
        ]
        self._read(m, rams)
        self._write(m, rams, adder)

        old = Signal(32 * cfg.partitions, init=sum(MINUS_ZERO << 32 * p for p in range(cfg.partitions)))
        with m.If(adder.adds):
            with m.Switch(adder.old_bank):
                for b, (even, odd) in enumerate(rams):
                    with m.Case(b):
                        m.d.comb += old.eq(Mux(adder.old_odd, odd.read_data, even.read_data))
        m.d.comb += adder.old.eq(old)
        return m

    def _grant(self, m: Module, way: str, taken: Value) -> None:
        """`ready` of the ports of one way; `taken` has the banks that belong to the tensor engine."""
        banks = self.cfg.psum.banks
        for n, name in enumerate(self.refused_names):
            if not name.startswith(way):
                continue
            port = getattr(self, name)
            bank = port.word[self._row_bits :]
            quiet = planted(self.plant, 5 if way == "read" else 9)
            after = Signal(banks, name=f"taken_after_{name}")
            m.d.comb += [
                port.ready.eq(~taken.bit_select(bank, 1)),
                after.eq(taken | Mux(port.valid, 1 << bank, 0)),
                self.refused[n].eq(port.valid & ~port.ready & ~quiet),
            ]
            taken = after

    def _read(self, m: Module, rams: list[list[Ram]]) -> None:
        banks = self.cfg.psum.banks
        row_bits = self._row_bits
        writer = self.accumulate
        adding = Signal()
        adding_bank = writer.element[1 + row_bits :]
        taken = Signal(banks, name="taken_read")
        m.d.comb += [
            adding.eq(writer.valid & writer.accumulate),
            taken.eq(Mux(adding & ~planted(self.plant, 3), 1 << adding_bank, 0)),
        ]
        self._grant(m, "read", taken)
        for b, pair in enumerate(rams):
            add_here = adding & (adding_bank == b)
            enable = Signal(name=f"engine_reads{b}")
            row = Signal(row_bits, name=f"read_row{b}")
            m.d.comb += row.eq(writer.element[1:])
            for name in self.ports:
                port = getattr(self, f"read_{name}")
                with m.If(port.valid & port.ready & (port.word[row_bits:] == b)):
                    m.d.comb += [row.eq(port.word), enable.eq(1)]
            for half, ram in enumerate(pair):
                mine = add_here & (writer.element[0] == half)
                m.d.comb += [ram.read_en.eq(enable | mine), ram.read_address.eq(row)]

        for name in self.ports:
            port = getattr(self, f"read_{name}")
            accepted = port.valid & port.ready
            of = Signal(range(banks), name=f"bank_of_{name}")
            m.d.sync += port.data_valid.eq(accepted)
            with m.If(accepted):
                m.d.sync += of.eq(port.word[row_bits:])
            shown = Signal.like(of, name=f"shown_{name}")
            m.d.comb += shown.eq(of)
            with m.If(planted(self.plant, 4)):
                late = Signal.like(of, name=f"late_{name}")
                m.d.sync += late.eq(of)
                m.d.comb += shown.eq(late)
            halves = [Signal(32 * self.cfg.partitions, name=f"half{half}_{name}") for half in range(_HALVES)]
            with m.If(port.data_valid):  # wide: nothing moves without need
                with m.Switch(shown):
                    for b, pair in enumerate(rams):
                        with m.Case(b):
                            m.d.comb += [half.eq(ram.read_data) for half, ram in zip(halves, pair, strict=True)]
                for p in range(self.cfg.partitions):
                    for n, half in enumerate(halves):
                        at = 64 * p + 32 * n
                        m.d.comb += port.data[at : at + 32].eq(half[32 * p : 32 * p + 32])

    def _write(self, m: Module, rams: list[list[Ram]], adder: PsumAdder) -> None:
        row_bits = self._row_bits
        partitions = self.cfg.partitions
        bank = adder.write_element[1 + row_bits :]
        taken = Signal(self.cfg.psum.banks, name="taken_write")
        m.d.comb += taken.eq(Mux(adder.write_valid & ~planted(self.plant, 6), 1 << bank, 0))
        self._grant(m, "write", taken)
        parts: dict[str, list[Signal]] = {}
        for name in self.ports:
            port = getattr(self, f"write_{name}")
            halves = [Signal(32 * partitions, name=f"write{half}_{name}") for half in range(_HALVES)]
            with m.If(port.valid):
                for p in range(partitions):
                    for n, half in enumerate(halves):
                        at = 64 * p + 32 * n
                        m.d.comb += half[32 * p : 32 * p + 32].eq(port.data[at : at + 32])
            parts[name] = halves
        for b, pair in enumerate(rams):
            for half, ram in enumerate(pair):
                m.d.comb += [
                    ram.write_en.eq(adder.write_valid & (bank == b) & (adder.write_element[0] == half)),
                    ram.write_address.eq(adder.write_element[1:]),
                    ram.write_mask.eq(adder.write_partitions),
                    ram.write_data.eq(adder.write_data),
                ]
                for name in self.ports:
                    port = getattr(self, f"write_{name}")
                    here = port.valid & port.ready & (port.word[row_bits:] == b)
                    with m.If(here & (port.bytes[4 * half] | planted(self.plant, 7))):
                        m.d.comb += [
                            ram.write_en.eq(1),
                            ram.write_address.eq(port.word),
                            ram.write_mask.eq(port.partitions | planted(self.plant, 8).replicate(partitions)),
                            ram.write_data.eq(parts[name][half]),
                        ]
