"""The vector unit: connects, and says when an instruction is through."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from rtl.gpsimd.layouts import ACCESS, rows_ports
from rtl.gpsimd.vector.compute import Compute
from rtl.gpsimd.vector.configuration import Configuration
from rtl.gpsimd.vector.decode import VectorDecode
from rtl.gpsimd.vector.layouts import Kind
from rtl.gpsimd.vector.legal import Legal
from rtl.gpsimd.vector.memory import VectorMemory
from rtl.gpsimd.vector.registers import VectorRegisters

__all__ = ["VectorUnit"]

_ILLEGAL = 2


class VectorUnit(wiring.Component):
    """Zve32x, one instruction after the other.

    start: instruction `bits` with x[rs1], x[rs2] is to be executed; all stay until `done`, in that cycle or later, with
    `result` for rd or, with `traps`, `cause` and `tval`. enabled: mstatus.VS is not 0; touched: VS becomes 3.
    csr, csr_write, csr_value, csr_read, csr_exists: Configuration's. access, allowed, reply and the ports of memory:
    VectorMemory's. moves: a pass, a row or an element; waits: memory is awaited. written: bytes `mask` of register
    `number` become `data`; for others to see.
    Timing: cycles, with n registers of the widest operand: vsetvl 1; elementwise n + 2, one more if the result is a
    mask; of masks 3; reductions n + 4 + log2(elements of a register); a division 19 for each register and element of a
    word; a permutation as many passes as it takes, and 2; viota 3 + n. Memory: VectorMemory's.
    """

    def __init__(self, lanes: int):
        self.lanes = lanes
        super().__init__(
            {
                "start": In(1),
                "bits": In(32),
                "rs1": In(32),
                "rs2": In(32),
                "enabled": In(1),
                "done": Out(1),
                "traps": Out(1),
                "cause": Out(5),
                "tval": Out(32),
                "result": Out(32),
                "touched": Out(1),
                "moves": Out(1),
                "waits": Out(1),
                "csr": In(12),
                "csr_write": In(1),
                "csr_value": In(32),
                "csr_read": Out(32),
                "csr_exists": Out(1),
                "access": Out(stream.Signature(ACCESS)),
                "allowed": In(1),
                "reply": In(32),
                "reply_valid": In(1),
                **rows_ports(lanes),
                "written": Out(1),
                "number": Out(5),
                "mask": Out(4 * lanes),
                "data": Out(32 * lanes),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lanes = self.lanes
        m.submodules.decode = decode = VectorDecode()
        m.submodules.configuration = configuration = Configuration(lanes)
        m.submodules.legal = legal = Legal(lanes)
        m.submodules.registers = registers = VectorRegisters(lanes)
        m.submodules.compute = compute = Compute(lanes)
        m.submodules.memory = memory = VectorMemory(lanes)
        i, now = decode.o, configuration.now
        does, refused = Signal(), Signal()
        is_memory, is_config = i.kind == Kind.MEMORY, i.kind == Kind.CONFIG
        m.d.comb += [
            decode.bits.eq(self.bits),
            legal.i.eq(i),
            legal.now.eq(now),
            does.eq(self.start & ((legal.legal & self.enabled) | compute.busy)),
            refused.eq(self.start & ~does),
            self.touched.eq(does),
            configuration.bits.eq(self.bits),
            configuration.rs1.eq(self.rs1),
            configuration.rs2.eq(self.rs2),
            configuration.set.eq(does & is_config),
            configuration.end.eq(self.done & ~self.traps),
            configuration.shrink.eq(memory.done & memory.shrinks),
            configuration.stop.eq(memory.done & memory.traps),
            configuration.index.eq(memory.element),
            configuration.saturates.eq(compute.saturates),
            configuration.csr.eq(self.csr),
            configuration.csr_write.eq(self.csr_write),
            configuration.csr_value.eq(self.csr_value),
            self.csr_read.eq(configuration.csr_read),
            self.csr_exists.eq(configuration.csr_exists),
            compute.start.eq(does & ~is_memory & ~is_config),
            compute.i.eq(i),
            compute.now.eq(now),
            compute.x.eq(self.rs1),
            compute.mask.eq(registers.mask_register),
            compute.first_data.eq(registers.first_data),
            compute.second_data.eq(registers.second_data),
            compute.third_data.eq(registers.third_data),
        ]
        self._memory(m, memory, legal, now, i, registers)
        m.d.comb += memory.start.eq(does & is_memory)
        m.d.comb += [
            self.done.eq(refused | (does & is_config) | compute.done | memory.done),
            self.traps.eq(refused | (memory.done & memory.traps)),
            self.cause.eq(Mux(refused, _ILLEGAL, memory.cause)),
            self.tval.eq(Mux(refused, self.bits, memory.address)),
            self.result.eq(Mux(is_config, configuration.new_vl, compute.result)),
            registers.read.eq(compute.read | memory.read),
            registers.first.eq(Mux(is_memory, memory.index_number, compute.first)),
            registers.second.eq(compute.second),
            registers.third.eq(Mux(is_memory, memory.data_number, compute.third)),
            self.moves.eq(compute.read | memory.moves),
            self.waits.eq(memory.waits),
            self.written.eq(compute.write | memory.write),
            self.number.eq(Mux(is_memory, memory.write_number, compute.write_number)),
            self.mask.eq(Mux(is_memory, memory.write_mask, compute.write_mask)),
            self.data.eq(Mux(is_memory, memory.write_data, compute.write_data)),
            registers.write.eq(self.written),
            registers.number.eq(self.number),
            registers.mask.eq(self.mask),
            registers.data.eq(self.data),
        ]
        return m

    def _memory(self, m: Module, memory: VectorMemory, legal: Legal, now, i, registers: VectorRegisters) -> None:
        """Loads and stores: how many elements of which size, and the ports."""
        whole = ((i.whole + 1) << exact_log2(4 * self.lanes)) >> i.width
        of_mask = (now.vl + 7) >> 3
        connect(m, memory.access, flipped(self.access))
        m.d.comb += [
            memory.i.eq(i),
            memory.rs1.eq(self.rs1),
            memory.rs2.eq(self.rs2),
            memory.width.eq(Mux(i.indexed, now.size, i.width)),
            memory.elements.eq(Mux(i.is_whole, whole, Mux(i.is_mask, of_mask, now.vl))),
            memory.vstart.eq(now.vstart),
            memory.group.eq(legal.field_group),
            memory.mask.eq(registers.mask_register),
            memory.index_data.eq(registers.first_data),
            memory.data.eq(registers.third_data),
            memory.allowed.eq(self.allowed),
            memory.reply.eq(self.reply),
            memory.reply_valid.eq(self.reply_valid),
        ]
        for name, member in rows_ports(self.lanes).items():
            inner, outer = getattr(memory, name), getattr(self, name)
            m.d.comb += outer.eq(inner) if member.flow == Out else inner.eq(outer)
