"""PSUM: banks of FP32 rows that add on write, and words that engines read and write."""

from typing import Any

from amaranth.hdl import Cat, DomainRenamer, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.base.fault import fault, plants_faults
from rtl.base.memory_port import PsumAccumulateSignature, PsumReadSignature, PsumTransposeSignature, PsumWriteSignature
from rtl.base.ram import Ram
from rtl.contract.config import Config
from rtl.contract.formats import CANONICAL_NAN_FP32
from rtl.contract.timing import PSUM_ADD_CYCLES
from rtl.memory.psum_adder import MINUS_ZERO, PsumAdder

__all__ = ["Psum"]

_HALVES = 2  # elements of a word


class Psum(wiring.Component):
    """An accumulating writer for each row group, `accumulate[g]`, and read and write ports of engines in order of
    priority.

    A bank does one read and one write a cycle. Writers of sums are never refused: an add takes the read port of
    its bank in the cycle it comes, a sum the write port of its bank in the cycle in which it commits; engines that
    want it wait. Of rows that come to one bank in one cycle only that of the lowest group is taken; the
    others are `lost`. Rows of a transpose at `transposed[g]` take the write port of their bank too, which no sum wants
    in that cycle, and are not changed. `refused` has a bit for each port, valid and not ready;
    `refused_names` lists them. The adders of group g run in the clock domain `add_domains[g]`, which must have an
    edge at the end of every cycle with bit g of `adding`. `form` is that of the adders (numeric.add_lanes). Reset:
    the contents stay. The even and the odd elements of a bank are a RAM each, so that adding touches only one of them.
    """

    def __init__(
        self,
        cfg: Config,
        ports: tuple[str, ...] = ("vector", "scalar"),
        add_domains: tuple[str, ...] = (),
        form: str = "structural",
    ):
        self.cfg = cfg
        self.ports = ports
        self.groups = cfg.tensor.groups
        self.add_domains = add_domains or ("sync",) * self.groups
        self.form = form
        self.refused_names = (*(f"read_{name}" for name in ports), *(f"write_{name}" for name in ports))
        super().__init__(
            {
                "accumulate": In(PsumAccumulateSignature(cfg)).array(self.groups),
                "transposed": In(PsumTransposeSignature(cfg)).array(self.groups),
                **{f"read_{name}": In(PsumReadSignature(cfg)) for name in ports},
                **{f"write_{name}": In(PsumWriteSignature(cfg)) for name in ports},
                "refused": Out(len(self.refused_names)),
                "adding": Out(self.groups),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg = self.cfg
        rows = cfg.psum.bank_bytes // (4 * _HALVES)
        self._row_bits = ceil_log2(rows)
        rams = [[Ram(32 * cfg.partitions, rows, granule=32) for _ in range(_HALVES)] for _ in range(cfg.psum.banks)]
        for b, pair in enumerate(rams):
            m.submodules[f"bank{b}_even"], m.submodules[f"bank{b}_odd"] = pair
        taken = self._taken(m)
        adders: list[PsumAdder] = []
        for g, writer in enumerate(self.accumulate):
            adder = PsumAdder(cfg, self.form)
            m.submodules[f"adder{g}"] = DomainRenamer(self.add_domains[g])(adder)
            adders.append(adder)
            m.d.comb += [
                adder.valid.eq(taken[g]),
                adder.element.eq(writer.element),
                adder.accumulate.eq(writer.accumulate),
                adder.partitions.eq(writer.partitions),
                adder.data.eq(writer.data),
                adder.rounding.eq(writer.rounding),
                adder.random.eq(writer.random),
            ]
        self._read(m, rams, taken)
        self._write(m, rams, adders)

        for g, adder in enumerate(adders):
            minus_zero = sum(MINUS_ZERO << 32 * p for p in range(cfg.partitions))
            old = Signal(32 * cfg.partitions, init=minus_zero, name=f"old{g}")
            bank = adder.old_bank
            if g:
                bank = Mux(fault("every group adds to the row that group 0 has read"), adders[0].old_bank, bank)
            with m.If(adder.adds):
                with m.Switch(bank):
                    for b, (even, odd) in enumerate(rams):
                        with m.Case(b):
                            m.d.comb += old.eq(Mux(adder.old_odd, odd.read_data, even.read_data))
            m.d.comb += adder.old.eq(old)
        return m

    def _bank(self, element: Value) -> Value:
        return element[1 + self._row_bits :]

    def _ram(self, m: Module, name: str, when: Value, element: Value) -> Signal:
        """One bit a RAM, banks outside, halves inside: that of `element` while `when`. Compared with each number in
        turn, sixteen times for each port, addresses were a third of what PSUM costs a simulator."""
        hit = Signal(_HALVES * self.cfg.psum.banks, name=name)
        m.d.comb += hit.eq(Mux(when, 1 << Cat(element[0], self._bank(element)), 0))
        return hit

    def _hit(self, m: Module, name: str, when: Value, word: Value) -> Signal:
        """One bit a bank: that of `word` while `when`."""
        hit = Signal(self.cfg.psum.banks, name=name)
        m.d.comb += hit.eq(Mux(when, 1 << word[self._row_bits :], 0))
        return hit

    def _taken(self, m: Module) -> list[Value]:
        """Whose row is taken in this cycle; says who loses one and whose adders have work."""
        found: list[Value] = []
        for g, writer in enumerate(self.accumulate):
            taken = Signal(name=f"taken{g}")
            meets = Cat(
                found[h] & (self._bank(self.accumulate[h].element) == self._bank(writer.element)) for h in range(g)
            ).any()
            ages = Signal(PSUM_ADD_CYCLES, name=f"ages{g}")  # rows inside the adders
            last = Mux(fault("the adders' clock stops before a sum has left them"), 0, ages[-1])
            m.d.sync += ages.eq(Cat(taken, ages))
            m.d.comb += [
                taken.eq(writer.valid & (~meets | fault("of two rows in one bank both are taken"))),
                writer.lost.eq(writer.valid & meets & ~fault("a lost row of PSUM is not reported")),
                self.adding[g].eq(taken | ages[:-1].any() | last),
            ]
            found.append(taken)
        return found

    def _grant(self, m: Module, way: str, taken: Value) -> None:
        """`ready` of the ports of one way; `taken` has the banks that belong to the tensor engine."""
        banks = self.cfg.psum.banks
        for n, name in enumerate(self.refused_names):
            if not name.startswith(way):
                continue
            port = getattr(self, name)
            bank = port.word[self._row_bits :]
            quiet = fault(f"a refused {way} of PSUM is not reported")
            after = Signal(banks, name=f"taken_after_{name}")
            m.d.comb += [
                port.ready.eq(~taken.bit_select(bank, 1)),
                after.eq(taken | Mux(port.valid, 1 << bank, 0)),
                self.refused[n].eq(port.valid & ~port.ready & ~quiet),
            ]
            taken = after

    def _read(self, m: Module, rams: list[list[Ram]], taken: list[Value]) -> None:
        banks = self.cfg.psum.banks
        row_bits = self._row_bits
        writers = self.accumulate
        adding = [took & writer.accumulate for took, writer in zip(taken, writers, strict=True)]
        closed = Signal(banks, name="taken_read")
        with m.If(~fault("a reader takes the bank that an add reads")):
            for add, writer in zip(adding, writers, strict=True):
                with m.If(add):
                    m.d.comb += closed.bit_select(self._bank(writer.element), 1).eq(1)
        self._grant(m, "read", closed)
        added = [
            self._ram(m, f"adds{g}", add, w.element) for g, (add, w) in enumerate(zip(adding, writers, strict=True))
        ]
        ports = [getattr(self, f"read_{name}") for name in self.ports]
        asked = [
            self._hit(m, f"reads_{name}", port.valid & port.ready, port.word)
            for name, port in zip(self.ports, ports, strict=True)
        ]
        for b, pair in enumerate(rams):
            adds = [add.word_select(b, _HALVES).any() for add in added]
            enable = Signal(name=f"engine_reads{b}")
            row = Signal(row_bits, name=f"read_row{b}")
            m.d.comb += row.eq(writers[0].element[1:])
            for here, writer in zip(adds[1:], writers[1:], strict=True):
                with m.If(here):
                    m.d.comb += row.eq(writer.element[1:])
            for port, hit in zip(ports, asked, strict=True):
                with m.If(hit[b]):
                    m.d.comb += [row.eq(port.word), enable.eq(1)]
            for half, ram in enumerate(pair):
                mine = Cat(add[_HALVES * b + half] for add in added).any()
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
            with m.If(fault("the read data come from the bank of the cycle before")):
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

    def _raw(self, m: Module, port: Any) -> Value:
        """The words of a transpose; planted: with canonical NaN."""
        if not plants_faults():
            return port.data
        words = [port.data[32 * p : 32 * p + 32] for p in range(self.cfg.partitions)]
        nan = [(w[23:31].all() & w[:23].any()) & fault("a NaN of a transpose loses its payload") for w in words]
        return Cat(Mux(bad, CANONICAL_NAN_FP32, w) for bad, w in zip(nan, words, strict=True))

    def _write(self, m: Module, rams: list[list[Ram]], adders: list[PsumAdder]) -> None:
        partitions = self.cfg.partitions
        closed = Signal(self.cfg.psum.banks, name="taken_write")
        for adder in adders:
            open_anyway = fault("an engine's write does not wait for the sum that commits in its bank")
            if adder is adders[-1] and adder is not adders[0]:
                open_anyway |= fault("an engine's write does not wait for the sum of the last group")
            with m.If(adder.write_valid & ~open_anyway):
                m.d.comb += closed.bit_select(self._bank(adder.write_element), 1).eq(1)
        turned = self.transposed
        raw = [self._raw(m, port) for port in turned]
        for port in turned:
            with m.If(port.valid & ~fault("an engine's write does not wait for a transpose")):
                m.d.comb += closed.bit_select(self._bank(port.element), 1).eq(1)
        self._grant(m, "write", closed)
        summed = [self._ram(m, f"sums{g}", a.write_valid, a.write_element) for g, a in enumerate(adders)]
        passed = [self._ram(m, f"turns{g}", port.valid, port.element) for g, port in enumerate(turned)]
        asked: dict[str, Signal] = {}
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
            asked[name] = self._hit(m, f"writes_{name}", port.valid & port.ready, port.word)
        for b, pair in enumerate(rams):
            for half, ram in enumerate(pair):
                at = _HALVES * b + half
                for adder, hit in zip(adders, summed, strict=True):
                    with m.If(hit[at]):
                        m.d.comb += [
                            ram.write_en.eq(1),
                            ram.write_address.eq(adder.write_element[1:][: len(ram.write_address)]),
                            ram.write_mask.eq(adder.write_partitions),
                            ram.write_data.eq(adder.write_data),
                        ]
                for port, words, hit in zip(turned, raw, passed, strict=True):
                    with m.If(hit[at]):
                        m.d.comb += [
                            ram.write_en.eq(1),
                            ram.write_address.eq(port.element[1:][: len(ram.write_address)]),
                            ram.write_mask.eq(
                                port.partitions
                                | fault("a transpose is written to all partitions").replicate(partitions)
                            ),
                            ram.write_data.eq(words),
                        ]
                for name in self.ports:
                    port = getattr(self, f"write_{name}")
                    both = fault("an engine writes both elements of a word of PSUM")
                    with m.If(asked[name][b] & (port.bytes[4 * half] | both)):
                        m.d.comb += [
                            ram.write_en.eq(1),
                            ram.write_address.eq(port.word[: len(ram.write_address)]),
                            ram.write_mask.eq(
                                port.partitions | fault("an engine writes all partitions of PSUM").replicate(partitions)
                            ),
                            ram.write_data.eq(parts[name][half]),
                        ]
