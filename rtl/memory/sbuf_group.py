"""The SBUF banks of the partitions of one DMA mover."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2, exact_log2

from rtl.base.fault import fault
from rtl.base.memory_port import sbuf_word_bits
from rtl.base.ram import Ram
from rtl.contract.config import Config
from rtl.memory.sbuf_arbiter import row_bits

__all__ = ["SbufGroup"]


class SbufGroup(wiring.Component):
    """Banks of P / dma.engines partitions, one RAM each: word w of a partition is row w / banks of bank w
    mod banks, partition p of the group at bits 64p. Does what the arbiters have decided.

    `read_banks`: banks that engines read, with their rows; `select[n]`: the bank of port n in the cycle
    of its data (0: none, data are 0). `write_banks[n]`: the bank port n writes.
    `mover_read`, `add_read` and `mover_write` are granted requests. Nothing here is refused. With `mover_sums`,
    `mover_sum` is written in place of the mover's data. Those of sums are there with sbuf.adders only.
    """

    def __init__(self, cfg: Config, reads: int, writes: int):
        self.cfg = cfg
        self.reads = reads
        self.writes = writes
        self.lanes = cfg.partitions // cfg.dma.engines
        banks = cfg.sbuf.banks
        width = 64 * self.lanes
        rows = data.ArrayLayout(row_bits(cfg), banks)
        pair = sbuf_word_bits(cfg) - 1
        sums = {
            "add_read": In(1),
            "add_read_lane": In(ceil_log2(self.lanes)),
            "add_read_pair": In(pair),
            "add_read_data": Out(128),
            "mover_sums": In(1),
            "mover_sum": In(128),
        }
        super().__init__(
            {
                "read_banks": In(banks),
                "read_rows": In(rows),
                "select": In(banks).array(reads),
                "data": Out(width).array(reads),
                "mover_read": In(1),
                "mover_read_lane": In(ceil_log2(self.lanes)),
                "mover_read_pair": In(pair),
                "mover_read_data": Out(128),
                "write_banks": In(banks).array(writes),
                "write_rows": In(rows),
                "write_data": In(width).array(writes),
                "write_bytes": In(8).array(writes),
                "write_partitions": In(self.lanes).array(writes),
                "mover_write": In(1),
                "mover_write_lane": In(ceil_log2(self.lanes)),
                "mover_write_pair": In(pair),
                "mover_write_data": In(128),
                "mover_write_bytes": In(16),
                **(sums if cfg.sbuf.adders else {}),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        banks = self.cfg.sbuf.banks
        pair_bits = exact_log2(banks) - 1
        rams: list[Ram] = []
        for b in range(banks):
            depth = self.cfg.sbuf.partition_bytes // 8 // banks
            m.submodules[f"bank_{b}"] = ram = Ram(64 * self.lanes, depth, 8)
            rams.append(ram)

        self._read(m, rams, pair_bits)
        self._write(m, rams, pair_bits)
        return m

    def _read(self, m: Module, rams: list[Ram], pair_bits: int) -> None:
        mover_row = self.mover_read_pair[pair_bits:]
        adds = self.cfg.sbuf.adders
        for b, ram in enumerate(rams):
            mine = self.mover_read & (self.mover_read_pair[:pair_bits] == b // 2)
            m.d.comb += [
                ram.read_en.eq(self.read_banks[b] | mine),
                ram.read_address.eq(Mux(self.read_banks[b], self.read_rows[b], mover_row)),
            ]
            if adds:
                with m.If(self.add_read & (self.add_read_pair[:pair_bits] == b // 2)):
                    m.d.comb += [ram.read_en.eq(1), ram.read_address.eq(self.add_read_pair[pair_bits:])]

        # the widest multiplexers of the core: one branch taken, nothing evaluated per bit
        for select, out in zip(self.select, self.data, strict=True):
            for b, ram in enumerate(rams):
                with m.If(select[b]):
                    m.d.comb += out.eq(ram.read_data)

        answer = self._answer(m, rams, pair_bits, "mover", "mover")
        if adds:
            self._answer(m, rams, pair_bits, "add", "sum")
        with m.If(fault("an engine gets the bank of the request, not of the data, when a mover read too") & answer):
            m.d.comb += self.data[0].eq(rams[0].read_data)

    def _answer(self, m: Module, rams: list[Ram], pair_bits: int, who: str, name: str) -> Signal:
        """Data of a read of 16 bytes in the cycle after it, in which the result is 1."""
        read = getattr(self, f"{who}_read")
        at_lane, at_pair, out = (getattr(self, f"{who}_read_{name}") for name in ("lane", "pair", "data"))
        answer = Signal(name=f"{who}_answer")
        lane = Signal.like(at_lane, name=f"{who}_lane")
        pair = Signal(pair_bits, name=f"{who}_pair")
        m.d.sync += answer.eq(read)
        with m.If(read):
            m.d.sync += [lane.eq(at_lane), pair.eq(at_pair)]
        with m.If(answer):
            with m.Switch(Cat(lane, pair)):
                for k in range(len(rams) // 2):
                    for p in range(self.lanes):
                        here = slice(64 * p, 64 * (p + 1))
                        with m.Case(k << len(lane) | p):
                            m.d.comb += out.eq(Cat(rams[2 * k].read_data[here], rams[2 * k + 1].read_data[here]))
                            with m.If(fault(f"a {name} reads its upper 8 bytes from the first lane")):
                                m.d.comb += out[64:].eq(rams[2 * k + 1].read_data[:64])
        return answer

    def _write(self, m: Module, rams: list[Ram], pair_bits: int) -> None:
        masks: list[Signal] = []
        for n, (partitions, given) in enumerate(zip(self.write_partitions, self.write_bytes, strict=True)):
            mask = Signal(8 * self.lanes, name=f"mask_{n}")
            lanes = Mux(fault("an engine writes partitions of SBUF that its mask excludes"), ~0, partitions)[
                : self.lanes
            ]
            m.d.comb += mask.eq(Cat(Mux(lanes[p], given, 0) for p in range(self.lanes)))
            masks.append(mask)

        mover_row = self.mover_write_pair[pair_bits:]
        halves: list[Signal] = []
        for half in range(2):
            mask = Signal(8 * self.lanes, name=f"mover_mask_{half}")
            given = self.mover_write_bytes[8 * half : 8 * half + 8]
            enabled = Mux(fault("a mover's byte mask is ignored"), 0xFF, given)
            with m.Switch(self.mover_write_lane):
                for p in range(self.lanes):
                    with m.Case(p):
                        m.d.comb += mask[8 * p : 8 * p + 8].eq(enabled)
            halves.append(mask)

        for b, ram in enumerate(rams):
            mine = Signal(name=f"mover_writes_{b}")
            engines = [banks[b] for banks in self.write_banks]
            half = slice(64 * (b % 2), 64 * (b % 2) + 64)
            word = self.mover_write_data[half]
            if self.cfg.sbuf.adders:
                word = Mux(self.mover_sums, self.mover_sum[half], word)
            m.d.comb += [
                mine.eq(self.mover_write & (self.mover_write_pair[:pair_bits] == b // 2)),
                ram.write_en.eq(Cat(*engines).any() | mine),
                ram.write_address.eq(Mux(mine, mover_row, self.write_rows[b])),
            ]
            for n, engine in enumerate(engines):
                with m.If(engine):
                    m.d.comb += [
                        ram.write_data.eq(self.write_data[n]),
                        ram.write_mask.eq(masks[n]),
                    ]
            with m.If(mine):
                m.d.comb += [
                    ram.write_data.eq(word.replicate(self.lanes)),
                    ram.write_mask.eq(halves[b % 2]),
                ]
