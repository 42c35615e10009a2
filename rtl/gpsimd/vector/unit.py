"""The vector unit: takes instructions in order, and connects what executes them side by side."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.base.fault import fault
from rtl.gpsimd.layouts import ACCESS, rows_ports
from rtl.gpsimd.vector.compute import Compute
from rtl.gpsimd.vector.configuration import Configuration
from rtl.gpsimd.vector.decode import VectorDecode
from rtl.gpsimd.vector.hazards import Hazards, Pipe
from rtl.gpsimd.vector.intake import Intake
from rtl.gpsimd.vector.layouts import Kind
from rtl.gpsimd.vector.legal import Legal
from rtl.gpsimd.vector.memory import VectorMemory
from rtl.gpsimd.vector.registers import VectorRegisters

__all__ = ["VectorUnit"]

_ILLEGAL = 2
_OF_INTAKE = ("size", "elements", "active")
_TO_COMPUTE = (*_OF_INTAKE, "carries", "scalar", "streams", "plain")


class VectorUnit(wiring.Component):
    """Zve32x. Instructions begin in order; arithmetic, loads and stores of rows overlap, register by register.

    start: instruction `bits` with x[rs1], x[rs2] is to be executed; all stay until `done`, in that cycle or later, with
    `result` for rd or, with `traps`, `cause` and `tval`. What cannot trap and gives nothing for rd is done as soon as
    it has begun: only with `quiet` all that was done is in registers, memory and CSRs. enabled: mstatus.VS is not 0;
    touched: VS becomes 3. csr, csr_write, csr_value, csr_read, csr_exists: Configuration's. access, allowed, reply and
    the ports of memory: VectorMemory's. moves: how many passes, rows and elements; waits: memory is awaited. written:
    bytes `mask` of register `number` become `data`, three at once at most; for others to see.
    Timing: an instruction is done in its first cycle, if those before leave room; vsetvl always is. It begins in the
    next one and takes, with n registers of the widest operand: elementwise n cycles, one more if the result is a mask;
    of masks 1; reductions n + 2 + log2(elements of a register); a division 19 for each register and element of a word;
    a permutation as many as it has passes; viota 1 + n. What follows an elementwise one begins behind its last pass,
    what follows another one two cycles later. A register can be read three cycles after the pass that makes it was
    taken, or two after its row was asked for. Those for rd wait until all else is through, and take four cycles.
    Memory: VectorMemory's.
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
                "quiet": Out(1),
                "moves": Out(2),
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
                "written": Out(1).array(3),
                "number": Out(5).array(3),
                "mask": Out(4 * lanes).array(3),
                "data": Out(32 * lanes).array(3),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lanes = self.lanes
        m.submodules.decode = decode = VectorDecode()
        m.submodules.configuration = configuration = Configuration(lanes)
        m.submodules.legal = legal = Legal(lanes)
        m.submodules.intake = intake = Intake(lanes)
        m.submodules.hazards = hazards = Hazards()
        m.submodules.registers = registers = VectorRegisters(lanes)
        m.submodules.compute = compute = Compute(lanes)
        m.submodules.memory = memory = VectorMemory(lanes)
        i, now = decode.o, configuration.now
        is_memory, is_config = i.kind == Kind.MEMORY, i.kind == Kind.CONFIG

        # what may begin
        does, refused, alone, waited_for = Signal(), Signal(), Signal(), Signal()  # waited_for: it is under way
        goes, begins, room, ends = Signal(), Signal(len(Pipe)), Signal(), Signal()
        looks, elements = Signal(), Signal()  # it goes by words; it goes by elements, as soon as nothing is under way
        computes = ~is_memory & ~is_config
        stale = fault("a mask is taken before it is there")
        m.d.comb += [
            decode.bits.eq(self.bits),
            legal.i.eq(i),
            legal.now.eq(now),
            does.eq(self.start & ((legal.legal & self.enabled) | waited_for)),
            refused.eq(self.start & ~does),
            self.touched.eq(does),
            self.quiet.eq(compute.idle & ~memory.load_busy & ~memory.loaded & ~memory.store_busy & ~memory.look_busy),
            looks.eq(is_memory & memory.by_words),
            alone.eq((i.kind == Kind.COUNT) | (i.kind == Kind.MOVE_OUT) | (is_memory & ~memory.by_rows)),
            room.eq(
                Mux(alone, (self.quiet | looks) & ~waited_for, 1) & (~intake.uses_mask | hazards.written[0] | stale)
            ),
            goes.eq(does & ~intake.empty & room),
            begins[Pipe.COMPUTE].eq(goes & computes & compute.ready),
            begins[Pipe.LOAD].eq(goes & is_memory & ~alone & ~i.store & memory.load_ready),
            begins[Pipe.STORE].eq(goes & is_memory & ~alone & i.store & memory.store_ready),
            begins[Pipe.LOOKUP].eq(goes & looks & memory.look_free),
            memory.begin.eq((goes & is_memory & alone & ~looks) | (elements & self.quiet)),
            ends.eq(waited_for & ((compute.ends & ~is_memory) | memory.looked | memory.done)),
        ]
        with m.If(memory.refuses):
            m.d.sync += elements.eq(1)
        with m.Elif(memory.begin):
            m.d.sync += elements.eq(0)
        with m.If(ends):
            m.d.sync += waited_for.eq(0)
        with m.Elif(alone & (begins[Pipe.COMPUTE] | begins[Pipe.LOOKUP] | memory.begin)):
            m.d.sync += waited_for.eq(1)
        m.d.comb += [
            self.done.eq(refused | (does & (is_config | intake.empty)) | (begins.any() & ~alone) | ends),
            self.traps.eq(refused | (memory.done & memory.traps)),
            self.cause.eq(Mux(refused, _ILLEGAL, memory.cause)),
            self.tval.eq(Mux(refused, self.bits, memory.address)),
            self.result.eq(Mux(is_config, configuration.new_vl, compute.result)),
            self.moves.eq(compute.read + memory.moves),
            self.waits.eq(memory.waits),
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
            intake.i.eq(i),
            intake.now.eq(now),
            intake.x.eq(self.rs1),
            intake.mask.eq(registers.mask_register),
            intake.first.eq(legal.first),
            intake.second.eq(legal.second),
            intake.to.eq(legal.to),
        ]
        self._hazards(m, hazards, intake, compute, memory, begins)
        self._registers(m, registers, compute, memory)
        m.d.comb += [
            compute.start.eq(begins[Pipe.COMPUTE]),
            compute.i.eq(i),
            compute.now.eq(now),
            *(getattr(compute, name).eq(getattr(intake, name)) for name in _TO_COMPUTE),
            memory.load.eq(begins[Pipe.LOAD]),
            memory.store.eq(begins[Pipe.STORE]),
            memory.look.eq(begins[Pipe.LOOKUP]),
            memory.i.eq(i),
            memory.rs1.eq(self.rs1),
            memory.rs2.eq(self.rs2),
            memory.vstart.eq(now.vstart),
            memory.group.eq(legal.field_group),
            memory.registers.eq(intake.registers),
            *(getattr(memory, name).eq(getattr(intake, name)) for name in _OF_INTAKE),
            memory.allowed.eq(self.allowed),
            memory.reply.eq(self.reply),
            memory.reply_valid.eq(self.reply_valid),
        ]
        connect(m, memory.access, flipped(self.access))
        for name, member in rows_ports(lanes).items():
            inner, outer = getattr(memory, name), getattr(self, name)
            m.d.comb += outer.eq(inner) if member.flow == Out else inner.eq(outer)
        return m

    def _hazards(
        self, m: Module, hazards: Hazards, intake: Intake, compute: Compute, memory: VectorMemory, begins: Signal
    ) -> None:
        m.d.comb += [
            hazards.begins.eq(begins),
            hazards.reads.eq(intake.reads),
            hazards.writes.eq(intake.writes),
            hazards.late.eq(compute.late | memory.load_late),
            hazards.wants_read[Pipe.COMPUTE].eq(compute.wants_read),
            hazards.wants_write[Pipe.COMPUTE].eq(compute.wants_write),
            hazards.has_read[Pipe.COMPUTE].eq(compute.has_read),
            hazards.has_written[Pipe.COMPUTE].eq(compute.has_written),
            hazards.wants_write[Pipe.LOAD].eq(memory.wants_write),
            hazards.has_written[Pipe.LOAD].eq(memory.has_written),
            hazards.wants_read[Pipe.STORE].eq(memory.wants_read),
            hazards.has_read[Pipe.STORE].eq(memory.has_read),
            hazards.wants_read[Pipe.LOOKUP].eq(memory.look_wants_read),
            hazards.wants_write[Pipe.LOOKUP].eq(memory.look_wants_write),
            hazards.has_read[Pipe.LOOKUP].eq(memory.look_closes.replicate(32)),
            hazards.has_written[Pipe.LOOKUP].eq(memory.look_closes.replicate(32)),
            compute.to_read.eq(hazards.to_read[Pipe.COMPUTE]),
            compute.to_write.eq(hazards.to_write[Pipe.COMPUTE]),
            compute.may.eq(hazards.may[Pipe.COMPUTE]),
            memory.load_may.eq(hazards.may[Pipe.LOAD]),
            memory.store_may.eq(hazards.may[Pipe.STORE]),
            memory.look_may.eq(hazards.may[Pipe.LOOKUP]),
        ]

    def _registers(self, m: Module, registers: VectorRegisters, compute: Compute, memory: VectorMemory) -> None:
        """Elements that are moved one after the other have the ports of passes, for then there are none."""
        one = memory.write
        m.d.comb += [
            registers.read.eq(compute.read | memory.read),
            registers.first.eq(Mux(memory.read, memory.index_number, compute.first)),
            registers.second.eq(compute.second),
            registers.third.eq(Mux(memory.read, memory.data_number, compute.third)),
            registers.read_stored.eq(memory.read_stored),
            registers.stored.eq(memory.stored),
            compute.first_data.eq(registers.first_data),
            compute.second_data.eq(registers.second_data),
            compute.third_data.eq(registers.third_data),
            memory.index_data.eq(registers.first_data),
            memory.data.eq(registers.third_data),
            memory.stored_data.eq(registers.stored_data),
            registers.read_looked.eq(memory.read_looked),
            registers.index.eq(memory.look_index_number),
            registers.looked.eq(memory.look_number),
            memory.look_index.eq(registers.index_data),
            memory.look_value.eq(registers.looked_data),
            Cat(self.written).eq(Cat(compute.write | one, memory.loaded, memory.found)),
            self.number[0].eq(Mux(one, memory.data_number, compute.write_number)),
            self.mask[0].eq(Mux(one, memory.element_mask, compute.write_mask)),
            self.data[0].eq(Mux(one, memory.element_data, compute.write_data)),
            self.number[1].eq(memory.write_number),
            self.mask[1].eq(memory.write_mask),
            self.data[1].eq(memory.write_data),
            self.number[2].eq(memory.found_number),
            self.mask[2].eq(memory.found_mask),
            self.data[2].eq(memory.found_data),
        ]
        for n in range(len(self.written)):
            m.d.comb += [
                registers.write[n].eq(self.written[n]),
                registers.number[n].eq(self.number[n]),
                registers.mask[n].eq(self.mask[n]),
                registers.data[n].eq(self.data[n]),
            ]
