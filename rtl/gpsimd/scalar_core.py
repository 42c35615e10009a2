"""The scalar core of a GPSIMD tile: fetch, decode, execute, memory, write back; in order, one instruction a cycle.

An instruction that leaves the execute stage retires: whatever can trap is known there (a load's or store's address is
checked before it is sent), so traps are precise and nothing behind that stage is undone.
"""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import Out, connect, flipped

from rtl.base.fault import fault
from rtl.contract.gpsimd import Counter
from rtl.gpsimd.align import LoadAlign
from rtl.gpsimd.csr import Csr
from rtl.gpsimd.decode import Decode
from rtl.gpsimd.divide import Divide
from rtl.gpsimd.execute import Execute
from rtl.gpsimd.fetch import Fetch
from rtl.gpsimd.layouts import DECODED, FETCHED, ISSUED, RETIRED, Branch, Unit, rows_ports, scalar_ports
from rtl.gpsimd.multiply import Multiply
from rtl.gpsimd.record import Record
from rtl.gpsimd.registers import Registers
from rtl.gpsimd.vector.unit import VectorUnit

__all__ = ["ScalarCore"]


class ScalarCore(wiring.Component):
    """RV32IMC_Zicsr_Zifencei, machine mode, and with `vectors` Zve32x, a lane for 32 bits of a line.

    line, reply, reply_valid, reply_fault: code by lines, as Fetch has them. access: loads and stores; `access_allowed`
    is combinational of the payload: there is memory for it. access_reply, with access_reply_valid: the word that a load
    reads, one cycle after it was taken or later. pending: interrupts (software, timer, external). hart, mtime: as CSRs
    show them. waits: in `wfi`, and all before has left, so that the clock may stop. retired, retired_valid: what
    leaves the last stage. start: in the first cycle after a reset; instructions come from `entry` on. state: what
    this cycle is for, a gpsimd.Counter from BUSY to MEMORY; `trapped`: a trap that is taken in this cycle. rows:
    the vector unit's way to rows of memory. moves: of the vector unit, which may go on behind an instruction that
    has retired; what others could see of that waits for it: loads and stores, CSRs, traps and interrupts, sleep.
    Timing: cycles more than one: `jal` or a branch back that is taken 1; any other jump, a branch forward that is
    taken or one back that is not 2; a load's or product's result used by the next instruction 1; a division 17.
    """

    def __init__(self, line_bits: int = 128, *, vectors: bool = True):
        self.fetch = Fetch(line_bits)
        self.vectors = vectors
        # what is in the stages; seen by proofs too
        self.d_valid = Signal()
        self.d = Signal(FETCHED)
        self.x_valid = Signal()
        self.x_first = Signal()  # its first cycle there
        self.x_ahead = Signal()  # the one behind it is from where it jumps to
        self.x = Signal(ISSUED)
        self.m_valid = Signal()
        self.m_load = Signal()
        self.m_multiply = Signal()
        self.m_place = Signal(2)
        self.m_funct3 = Signal(3)
        self.m_told = Signal(RETIRED)
        super().__init__(scalar_ports(line_bits, vectors))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.fetch = fetch = self.fetch
        m.submodules.decode = decode = Decode(self.vectors)
        m.submodules.registers = registers = Registers()
        m.submodules.execute = execute = Execute()
        m.submodules.divide = divide = Divide()
        m.submodules.multiply = multiply = Multiply()
        m.submodules.csr = csr = Csr(self.vectors)
        m.submodules.record = record = Record()
        m.submodules.load = load = LoadAlign()
        connect(m, fetch.line, flipped(self.line))
        jump = Signal()  # from the execute stage: nothing behind it is wanted
        d_moves, x_moves, m_moves = Signal(), Signal(), Signal()

        # decode; jal and a branch back, most often a loop's, go from here, and execute sees whether that was right
        d_valid, d = self.d_valid, self.d
        what, ahead = Signal(DECODED), Signal()
        back = (what.branch == Branch.CONDITIONAL) & what.immediate[31]
        m.d.comb += [
            fetch.reply.eq(self.reply),
            fetch.reply_valid.eq(self.reply_valid),
            fetch.reply_fault.eq(self.reply_fault),
            fetch.o.ready.eq(~d_valid | d_moves),
            decode.bits.eq(d.bits),
            decode.short.eq(d.short),
            what.eq(decode.o),
            ahead.eq(((what.branch == Branch.JUMP) | back) & ~what.illegal & ~d.fault & ~d.fault_second),
        ]
        with m.If(fetch.o.ready):
            m.d.sync += [d_valid.eq(fetch.o.valid), d.eq(fetch.o.payload)]
        with m.If(jump | (d_moves & ahead)):
            m.d.sync += d_valid.eq(0)

        # execute
        x, x_valid, x_first, x_ahead = self.x, self.x_valid, self.x_first, self.x_ahead
        x_what, unit = x.what, x.what.unit
        done = execute.o
        is_load, is_store = unit == Unit.LOAD, unit == Unit.STORE
        m_load, m_rd, m_valid, m_waits = self.m_load, Signal(5), self.m_valid, Signal()

        def used(number: Value) -> Value:
            return (number != 0) & ((what.rs1 == number) | (what.rs2 == number))

        late = x_valid & (is_load | (unit == Unit.MULTIPLY)) & used(x_what.rd)
        waits = late & ~fault("a loaded value is used a cycle early") | m_waits & used(m_rd)
        m.d.comb += d_moves.eq(d_valid & ~waits & (~x_valid | x_moves) & ~jump)
        does, interrupted, ready, delays = Signal(), Signal(), Signal(), Signal()
        with m.If(x_moves | jump):
            m.d.sync += x_valid.eq(0)
        m.d.sync += x_first.eq(delays)
        with m.If(d_moves):
            m.d.sync += [
                x_valid.eq(1),
                x_first.eq(1),
                x_ahead.eq(ahead),
                x.fetched.eq(d),
                x.what.eq(what),
                x.a.eq(registers.first_value),
                x.b.eq(registers.second_value),
            ]
        quiet, waits_for_quiet = Signal(init=1), Signal()  # quiet: no instruction of vectors goes on behind
        traps, early, waits_early = done.traps, execute.early, Signal()  # early: but for vectors
        with m.Switch(unit):
            with m.Case(Unit.ALU, Unit.LINK, Unit.MULTIPLY, Unit.DIVIDE, Unit.NOTHING, Unit.VECTOR):
                m.d.comb += waits_early.eq(~quiet & (early | x_what.flush))
            with m.Default():
                m.d.comb += waits_early.eq(~quiet & ~fault("a load or store does not wait for those of vectors"))
        m.d.comb += [
            waits_for_quiet.eq(waits_early | (~quiet & traps)),
            delays.eq(x_valid & x_first & csr.interrupt & ~quiet),
            interrupted.eq(x_valid & x_first & csr.interrupt & quiet),  # before it has begun
            does.eq(
                x_valid
                & ~interrupted
                & ~delays
                & ~waits_early
                & (~early | fault("a store goes to memory although it traps"))
            ),
            x_moves.eq(x_valid & ~interrupted & ~delays & ~waits_for_quiet & (ready | traps) & ~m_waits),
            self.access.valid.eq(does & (is_load | is_store) & ~m_waits),
            self.access.payload.address.eq(done.address),
            self.access.payload.write.eq(is_store),
            self.access.payload.mask.eq(done.mask),
            self.access.payload.data.eq(done.data),
            # a core whose clock stands still would not see the reply of a load before
            self.waits.eq(
                does & (unit == Unit.WFI) & ~csr.wake & (~m_valid | fault("a core sleeps although a load is under way"))
            ),
        ]
        vector_waits, vector_done = Signal(), Signal()
        if self.vectors:
            vector = self._vector(m, x, x_valid & ~interrupted & ~delays & ~m_waits, execute, csr)
            m.d.comb += [quiet.eq(vector.quiet), vector_waits.eq(vector.waits), vector_done.eq(vector.done)]
        with m.Switch(unit):
            with m.Case(Unit.LOAD, Unit.STORE):
                m.d.comb += ready.eq(self.access.ready & ~fault("a load or store is never taken"))
            with m.Case(Unit.VECTOR):
                m.d.comb += ready.eq(vector_done)
            with m.Case(Unit.DIVIDE):
                m.d.comb += ready.eq(divide.done)
            with m.Case(Unit.WFI):
                m.d.comb += ready.eq(csr.wake)
            with m.Default():
                m.d.comb += ready.eq(1)
        m.d.comb += [
            execute.i.eq(x),
            execute.allowed.eq(self.access_allowed),
            execute.csr_read.eq(csr.read),
            execute.csr_illegal.eq(csr.illegal),
            execute.quotient.eq(divide.result),
            divide.start.eq(does & (unit == Unit.DIVIDE)),
            divide.end.eq(x_moves | jump),
            divide.signed.eq(~x_what.funct3[0]),
            divide.remainder.eq(x_what.funct3[1]),
            divide.first.eq(x.a),
            divide.second.eq(x.b),
            multiply.en.eq(x_moves),
            multiply.funct3.eq(x_what.funct3),
            multiply.first.eq(x.a),
            multiply.second.eq(Mux(fault("a product is always a square"), x.a, x.b)),
            csr.address.eq(x_what.csr),
            csr.use.eq(x_what.csr_use),
            csr.value.eq(Mux(x_what.csr_immediate, x_what.immediate, x.a)),
            csr.writes.eq(x_what.csr_writes),
            csr.commit.eq(x_moves & ~traps),
            csr.write_commit.eq(x_moves & ~traps & (unit == Unit.CSR)),
            csr.trap.eq(interrupted | (x_moves & traps)),
            csr.cause.eq(Mux(interrupted, csr.interrupt_cause, done.cause)),
            csr.pc.eq(x.fetched.pc),
            csr.tval.eq(Mux(interrupted, 0, done.tval)),
            csr.mret.eq(x_moves & ~traps & (unit == Unit.MRET)),
            csr.pending.eq(self.pending),
            csr.hart.eq(self.hart),
            csr.mtime.eq(self.mtime),
        ]

        # where it goes
        next_pc = Signal(32)
        with m.If(interrupted | traps):
            m.d.comb += next_pc.eq(csr.vector)
        with m.Else():
            m.d.comb += next_pc.eq(Mux(unit == Unit.MRET, csr.epc, done.next_pc))
        not_so = done.taken ^ (x_ahead & ~fault("a loop is never left"))
        m.d.comb += [
            jump.eq(interrupted | (x_moves & (traps | (unit == Unit.MRET) | not_so | x_what.flush))),
            fetch.jump.eq(jump | (d_moves & ahead) | self.start),
            fetch.target.eq(Mux(self.start, self.entry, Mux(jump, next_pc, (d.pc + what.immediate)[:32]))),
            fetch.flush.eq(x_moves & ~traps & x_what.flush),
            record.i.eq(x),
            record.done.eq(done),
            record.next_pc.eq(next_pc),
            record.moves.eq(x_moves),
            record.interrupted.eq(interrupted),
            record.interrupt_cause.eq(csr.interrupt_cause),
            self.trapped.valid.eq(csr.trap),
            self.trapped.nowhere.eq(csr.nowhere),
            self.trapped.cause.eq(csr.cause[:5]),
            self.trapped.pc.eq(x.fetched.pc),
        ]

        # what a cycle is for, by what is in the execute stage, or why nothing is
        no_code, hole = Signal(4, init=int(Counter.FETCH)), Signal(4, init=int(Counter.FETCH))
        with m.If(jump | (d_moves & ahead)):
            m.d.sync += no_code.eq(Counter.BRANCH)
        with m.Elif(fetch.o.ready):
            m.d.sync += no_code.eq(Counter.FETCH)
        with m.If(jump):
            m.d.sync += hole.eq(Counter.BRANCH)
        with m.Elif(d_valid):
            m.d.sync += hole.eq(Mux(late, Mux(is_load, Counter.LOAD, Counter.UNIT), Counter.MEMORY))
        with m.Else():
            m.d.sync += hole.eq(no_code)
        with m.If(interrupted):
            m.d.comb += self.state.eq(Counter.BRANCH)
        with m.Elif(x_moves):
            m.d.comb += self.state.eq(Counter.BUSY)
        with m.Elif(~x_valid):
            m.d.comb += self.state.eq(hole)
        with m.Elif(m_waits):
            m.d.comb += self.state.eq(Counter.MEMORY)
        with m.Elif(delays | waits_for_quiet):
            m.d.comb += self.state.eq(Mux(vector_waits, Counter.MEMORY, Counter.VECTOR))
        with m.Elif(unit == Unit.WFI):
            m.d.comb += self.state.eq(Counter.SLEEP)
        with m.Elif(unit == Unit.VECTOR):
            m.d.comb += self.state.eq(Mux(vector_waits, Counter.MEMORY, Counter.VECTOR))
        with m.Else():
            m.d.comb += self.state.eq(Mux(unit == Unit.DIVIDE, Counter.UNIT, Counter.MEMORY))

        # memory
        m_multiply, m_place, m_funct3 = self.m_multiply, self.m_place, self.m_funct3
        m_told, m_result, m_value = self.m_told, Signal(32), Signal(32)
        with m.If(m_moves):
            m.d.sync += [m_valid.eq(0), m_rd.eq(0)]
        with m.If(x_moves):
            m.d.sync += [
                m_valid.eq(1),
                m_told.eq(record.o),
                m_rd.eq(Mux(traps & ~fault("a load that traps writes its register"), 0, x_what.rd)),
                m_result.eq(done.result),
                m_load.eq(is_load & ~traps),
                m_multiply.eq(unit == Unit.MULTIPLY),
                m_place.eq(done.address),
                m_funct3.eq(x_what.funct3),
            ]
        m.d.comb += [
            m_waits.eq(m_valid & m_load & ~self.access_reply_valid),
            m_moves.eq(m_valid & ~m_waits),
            load.funct3.eq(m_funct3),
            load.place.eq(m_place),
            load.word.eq(self.access_reply),
            m_value.eq(Mux(m_load, load.value, Mux(m_multiply, multiply.result, m_result))),
        ]

        # write back
        w_rd, w_value = Signal(5), Signal(32)
        m.d.sync += [self.retired_valid.eq(m_moves), w_rd.eq(0)]
        with m.If(m_moves):
            m.d.sync += [
                w_rd.eq(m_rd),
                w_value.eq(m_value),
                self.retired.eq(m_told),
                self.retired.rd_wdata.eq(Mux(m_rd == 0, 0, m_value)),
                self.retired.mem_rdata.eq(Mux(m_load, self.access_reply, 0)),
            ]
        m.d.comb += [
            registers.first.eq(what.rs1),
            registers.second.eq(what.rs2),
            registers.x_rd.eq(Mux(x_valid, x_what.rd, 0)),
            registers.x_value.eq(done.result),
            registers.m_rd.eq(m_rd),
            registers.m_value.eq(m_value),
            registers.w_rd.eq(w_rd),
            registers.w_value.eq(w_value),
        ]
        return m

    def _vector(self, m: Module, x: Value, goes: Value, execute: Execute, csr: Csr) -> VectorUnit:
        """The vector unit, which takes instructions from the execute stage, and its way to memory."""
        m.submodules.vector = vector = VectorUnit(len(self.reply) // 32)
        is_vector = (x.what.unit == Unit.VECTOR) & ~x.what.illegal & ~x.fetched.fault & ~x.fetched.fault_second
        rows = self.rows
        m.d.comb += [
            vector.start.eq(goes & is_vector),
            vector.bits.eq(x.fetched.bits),
            vector.rs1.eq(x.a),
            vector.rs2.eq(x.b),
            vector.enabled.eq(csr.vector_enabled),
            vector.csr.eq(csr.address),
            vector.csr_write.eq(csr.vector_write),
            vector.csr_value.eq(csr.new),
            csr.vector_exists.eq(vector.csr_exists),
            csr.vector_read.eq(vector.csr_read),
            csr.vector_touched.eq(vector.touched),
            execute.vector_traps.eq(vector.traps),
            execute.vector_cause.eq(vector.cause),
            execute.vector_tval.eq(vector.tval),
            execute.vector_result.eq(vector.result),
            vector.allowed.eq(self.access_allowed),
            vector.access.ready.eq(self.access.ready),
            vector.reply.eq(self.access_reply),
            vector.reply_valid.eq(self.access_reply_valid),
            self.moves.eq(vector.moves),
            *(
                getattr(rows, name).eq(getattr(vector, name))
                if member.flow == Out
                else getattr(vector, name).eq(getattr(rows, name))
                for name, member in rows_ports(vector.lanes).items()
            ),
        ]
        with m.If(is_vector):
            m.d.comb += [self.access.valid.eq(vector.access.valid), self.access.payload.eq(vector.access.payload)]
        return vector
