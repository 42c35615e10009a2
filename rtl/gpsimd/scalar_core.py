"""The scalar core of a GPSIMD tile: fetch, decode, execute, memory, write back; in order, one instruction a cycle.

An instruction that leaves the execute stage retires: whatever can trap is known there (a load's or store's address is
checked before it is sent), so traps are precise and nothing behind that stage is undone.
"""

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.gpsimd.align import LoadAlign, StoreAlign
from rtl.gpsimd.alu import ScalarAlu
from rtl.gpsimd.csr import Csr
from rtl.gpsimd.decode import Decode
from rtl.gpsimd.divide import Divide
from rtl.gpsimd.expand import Expand
from rtl.gpsimd.fetch import Fetch
from rtl.gpsimd.layouts import DECODED, FETCHED, RETIRED, Branch, Unit
from rtl.gpsimd.multiply import Multiply

__all__ = ["ACCESS", "ScalarCore"]

ACCESS = data.StructLayout({"address": 32, "write": 1, "mask": 4, "data": 32})
"""A load or store: `address` of a byte, `mask` and `data` of the word of 4 bytes that holds it."""


class ScalarCore(wiring.Component):
    """RV32IMC_Zicsr_Zifencei, machine mode.

    line, reply, reply_valid, reply_fault: code by lines, as Fetch has them. access: loads and stores; `access_allowed`
    is combinational of the payload: there is memory for it. access_reply, with access_reply_valid: the word that a load
    reads, one cycle after it was taken or later. pending: interrupts (software, timer, external). hart, mtime: as CSRs
    show them. waits: in `wfi`. retired, retired_valid: what leaves the last stage.
    Timing: cycles more than one: `jal` or a branch back that is taken 1; any other jump, a branch forward that is taken
    or one back that is not 2; a load's or product's result used by the next instruction 1; a division 17.
    """

    def __init__(self, line_bits: int = 128, reset_pc: int = 0x1000_0000):
        self.fetch = Fetch(line_bits, reset_pc)
        super().__init__(
            {
                "line": Out(stream.Signature(32 - self.fetch.shift)),
                "reply": In(line_bits),
                "reply_valid": In(1),
                "reply_fault": In(1),
                "access": Out(stream.Signature(ACCESS)),
                "access_allowed": In(1),
                "access_reply": In(32),
                "access_reply_valid": In(1),
                "pending": In(3),
                "hart": In(32),
                "mtime": In(64),
                "waits": Out(1),
                "retired": Out(RETIRED),
                "retired_valid": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.fetch = fetch = self.fetch
        m.submodules.expand = expand = Expand()
        m.submodules.decode = decode = Decode()
        m.submodules.alu = alu = ScalarAlu()
        m.submodules.divide = divide = Divide()
        m.submodules.multiply = multiply = Multiply()
        m.submodules.store = store = StoreAlign()
        m.submodules.load = load = LoadAlign()
        m.submodules.csr = csr = Csr()
        m.d.comb += [
            self.line.payload.eq(fetch.line.payload),
            self.line.valid.eq(fetch.line.valid),
            fetch.line.ready.eq(self.line.ready),
            fetch.reply.eq(self.reply),
            fetch.reply_valid.eq(self.reply_valid),
            fetch.reply_fault.eq(self.reply_fault),
            csr.pending.eq(self.pending),
            csr.hart.eq(self.hart),
            csr.mtime.eq(self.mtime),
        ]

        # decode
        d_valid, d = Signal(), Signal(FETCHED)
        d_moves, x_moves, m_moves = Signal(), Signal(), Signal()
        jump = Signal()
        registers = Array(Signal(32, name=f"x{n}") for n in range(32))
        m.d.comb += fetch.o.ready.eq(~d_valid | d_moves)
        with m.If(fetch.o.ready):
            m.d.sync += [d_valid.eq(fetch.o.valid), d.eq(fetch.o.payload)]
        with m.If(jump):
            m.d.sync += d_valid.eq(0)
        what = Signal(DECODED)
        m.d.comb += [
            expand.half.eq(d.bits[:16]),
            decode.word.eq(Mux(d.short, expand.word, d.bits)),
            what.eq(decode.o),
        ]
        with m.If(d.short & expand.illegal):
            m.d.comb += what.illegal.eq(1)

        # jal and a branch back, most often a loop's, go from here; the execute stage sees whether that was right
        ahead, d_jumps = Signal(), Signal()
        back = (what.branch == Branch.CONDITIONAL) & what.immediate[31]
        m.d.comb += [
            ahead.eq(((what.branch == Branch.JUMP) | back) & ~what.illegal & ~d.fault & ~d.fault_second),
            d_jumps.eq(d_moves & ahead),
        ]
        with m.If(d_jumps):
            m.d.sync += d_valid.eq(0)

        # execute
        x_ahead = Signal()
        x_valid, x, x_what = Signal(), Signal(FETCHED), Signal(DECODED)
        x_first, x_a, x_b = Signal(), Signal(32), Signal(32)
        x_result, x_late = Signal(32), Signal()
        m_valid, m_rd, m_result, m_value = Signal(), Signal(5), Signal(32), Signal(32)
        m_waits = Signal()  # for the word of a load
        w_rd, w_value = Signal(5), Signal(32)

        def operand(number: Value) -> Value:
            """The register as the instruction in decode sees it: of the youngest that writes it."""
            old = Mux(w_rd == number, w_value, registers[number])
            middle = Mux((m_rd == number) & m_valid, m_value, old)
            return Mux(number == 0, 0, Mux((x_what.rd == number) & x_valid, x_result, middle))

        def used(number: Value) -> Value:
            return ((what.rs1 != 0) & (what.rs1 == number)) | ((what.rs2 != 0) & (what.rs2 == number))

        late = x_valid & x_late & used(x_what.rd) & ~fault("a loaded value is used a cycle early")
        waits = late | (m_waits & used(m_rd))
        m.d.comb += d_moves.eq(d_valid & ~waits & (~x_valid | x_moves) & ~jump)
        with m.If(x_moves | jump):
            m.d.sync += x_valid.eq(0)
        m.d.sync += x_first.eq(0)
        with m.If(d_moves):
            m.d.sync += [
                x_valid.eq(1),
                x_first.eq(1),
                x_ahead.eq(ahead),
                x.eq(d),
                x_what.eq(what),
                x_a.eq(operand(what.rs1)),
                x_b.eq(operand(what.rs2)),
            ]
        address, after, target = Signal(32), Signal(32), Signal(32)
        unit = x_what.unit
        is_load, is_store = unit == Unit.LOAD, unit == Unit.STORE
        m.d.comb += [
            address.eq(x_a + x_what.immediate),
            after.eq(x.pc + Mux(x.short & ~fault("a short instruction's link is that of a long one"), 2, 4)),
            target.eq(Mux(x_what.branch == Branch.INDIRECT, address & 0xFFFFFFFE, (x.pc + x_what.immediate)[:32])),
            alu.operator.eq(x_what.operator),
            alu.first.eq(Mux(x_what.first_is_pc, x.pc, x_a)),
            alu.second.eq(Mux(x_what.second_is_immediate, x_what.immediate, x_b)),
            alu.left.eq(x_a),
            alu.right.eq(x_b),
            alu.funct3.eq(x_what.funct3),
            divide.signed.eq(~x_what.funct3[0]),
            divide.remainder.eq(x_what.funct3[1]),
            divide.first.eq(x_a),
            divide.second.eq(x_b),
            multiply.en.eq(x_moves),
            multiply.funct3.eq(x_what.funct3),
            multiply.first.eq(x_a),
            multiply.second.eq(x_b),
            store.funct3.eq(x_what.funct3),
            store.place.eq(address[:2]),
            store.value.eq(x_b),
            csr.address.eq(x_what.csr),
            csr.use.eq(x_what.csr_use),
            csr.value.eq(Mux(x_what.csr_immediate, x_what.immediate, x_a)),
            csr.writes.eq(x_what.csr_writes),
            x_late.eq(is_load | (unit == Unit.MULTIPLY)),
        ]
        with m.Switch(unit):
            with m.Case(Unit.LINK):
                m.d.comb += x_result.eq(after)
            with m.Case(Unit.DIVIDE):
                m.d.comb += x_result.eq(divide.result)
            with m.Case(Unit.CSR):
                m.d.comb += x_result.eq(csr.read)
            with m.Default():
                m.d.comb += x_result.eq(alu.result)

        # what it does instead of what it says
        traps, cause, tval = Signal(), Signal(5), Signal(32)
        with m.If(x.fault | x.fault_second):
            m.d.comb += [traps.eq(1), cause.eq(1), tval.eq(Mux(x.fault, x.pc, x.pc + 2))]
        with m.Elif(x_what.illegal | ((unit == Unit.CSR) & csr.illegal)):
            m.d.comb += [traps.eq(1), cause.eq(2), tval.eq(x.bits)]
        with m.Elif(unit == Unit.EBREAK):
            m.d.comb += [traps.eq(1), cause.eq(3), tval.eq(x.pc)]
        with m.Elif(unit == Unit.ECALL):
            m.d.comb += [traps.eq(1), cause.eq(11)]
        with m.Elif((is_load | is_store) & ~store.aligned):
            m.d.comb += [traps.eq(1), cause.eq(Mux(is_store, 6, 4)), tval.eq(address)]
        with m.Elif((is_load | is_store) & ~self.access_allowed):
            m.d.comb += [traps.eq(1), cause.eq(Mux(is_store, 7, 5)), tval.eq(address)]
        does, interrupted = Signal(), Signal()
        m.d.comb += [
            # an interrupt comes before an instruction has begun
            interrupted.eq(x_valid & x_first & csr.interrupt),
            does.eq(x_valid & ~interrupted & ~traps),
            self.access.valid.eq(does & (is_load | is_store) & ~m_waits),
            self.access.payload.address.eq(address),
            self.access.payload.write.eq(is_store),
            self.access.payload.mask.eq(store.mask),
            self.access.payload.data.eq(store.data),
            divide.start.eq(does & (unit == Unit.DIVIDE)),
            divide.end.eq(x_moves | jump),
            self.waits.eq(does & (unit == Unit.WFI) & ~csr.wake),
        ]
        ready = Signal()
        with m.If(traps):
            m.d.comb += ready.eq(1)
        with m.Elif(is_load | is_store):
            m.d.comb += ready.eq(self.access.ready)
        with m.Elif(unit == Unit.DIVIDE):
            m.d.comb += ready.eq(divide.done)
        with m.Elif(unit == Unit.WFI):
            m.d.comb += ready.eq(csr.wake)
        with m.Else():
            m.d.comb += ready.eq(1)
        m.d.comb += x_moves.eq(x_valid & ~interrupted & ready & ~m_waits)

        # where it goes
        taken = Signal()
        m.d.comb += [
            taken.eq(
                (x_what.branch == Branch.JUMP)
                | (x_what.branch == Branch.INDIRECT)
                | ((x_what.branch == Branch.CONDITIONAL) & alu.taken)
            ),
            csr.commit.eq(x_moves & ~traps),
            csr.write_commit.eq(x_moves & ~traps & (unit == Unit.CSR)),
            csr.trap.eq(interrupted | (x_moves & traps)),
            csr.cause.eq(Mux(interrupted, csr.interrupt_cause, cause)),
            csr.pc.eq(x.pc),
            csr.tval.eq(Mux(interrupted, 0, tval)),
            csr.mret.eq(x_moves & ~traps & (unit == Unit.MRET)),
        ]
        next_pc = Signal(32)
        with m.If(interrupted | traps):
            m.d.comb += next_pc.eq(csr.vector)
        with m.Elif(unit == Unit.MRET):
            m.d.comb += next_pc.eq(csr.epc)
        with m.Elif(taken):
            m.d.comb += next_pc.eq(target)
        with m.Else():
            m.d.comb += next_pc.eq(after)
        not_so = taken ^ (x_ahead & ~fault("a loop is never left"))
        turns = traps | (unit == Unit.MRET) | not_so | x_what.flush
        m.d.comb += [
            jump.eq(interrupted | (x_moves & turns)),
            fetch.jump.eq(jump | d_jumps),
            fetch.target.eq(Mux(jump, next_pc, (d.pc + what.immediate)[:32])),
            fetch.flush.eq(x_moves & ~traps & x_what.flush),
        ]

        # memory, and what is told of an instruction
        m_load, m_multiply, m_place, m_funct3 = Signal(), Signal(), Signal(2), Signal(3)
        m_told, order = Signal(RETIRED), Signal(64)
        enters_handler, entered_for = Signal(), Signal(5)
        with m.If(m_moves):
            m.d.sync += m_valid.eq(0)
        with m.If(interrupted):
            m.d.sync += [enters_handler.eq(1), entered_for.eq(csr.interrupt_cause[:5])]
        told = Signal(RETIRED)
        accesses = ~traps & (is_load | is_store)
        m.d.comb += [
            told.order.eq(order),
            told.insn.eq(Mux(x.fault | x.fault_second, 0, x.bits)),
            told.cause.eq(Mux(traps, cause, Mux(enters_handler, entered_for, 0))),
            told.trap.eq(traps),
            told.intr.eq(enters_handler),
            told.pc_rdata.eq(x.pc),
            told.pc_wdata.eq(next_pc),
            told.rs1_addr.eq(x_what.rs1),
            told.rs1_rdata.eq(x_a),
            told.rs2_addr.eq(x_what.rs2),
            told.rs2_rdata.eq(x_b),
            told.rd_addr.eq(Mux(traps, 0, x_what.rd)),
            told.mem_addr.eq(Mux(accesses, Cat(Signal(2), address[2:]), 0)),
            told.mem_rmask.eq(Mux(accesses & is_load, store.mask, 0)),
            told.mem_wmask.eq(Mux(accesses & is_store, store.mask, 0)),
            told.mem_wdata.eq(Mux(accesses & is_store, store.data, 0)),
        ]
        with m.If(x_moves):
            m.d.sync += [
                order.eq(order + 1),
                enters_handler.eq(0),
                m_valid.eq(1),
                m_told.eq(told),
                m_rd.eq(Mux(traps, 0, x_what.rd)),
                m_result.eq(x_result),
                m_load.eq(accesses & is_load),
                m_multiply.eq(unit == Unit.MULTIPLY),
                m_place.eq(address[:2]),
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
        m.d.sync += [self.retired_valid.eq(m_moves), w_rd.eq(0)]
        with m.If(m_moves):
            m.d.sync += [w_rd.eq(m_rd), w_value.eq(m_value), self.retired.eq(m_told)]
            m.d.sync += [
                self.retired.rd_wdata.eq(Mux(m_rd == 0, 0, m_value)),
                self.retired.mem_rdata.eq(Mux(m_load, self.access_reply, 0)),
            ]
        with m.If(w_rd != 0):
            m.d.sync += registers[w_rd].eq(w_value)
        return m
