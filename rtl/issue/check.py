"""Decides whether an instruction may run, before anything of it does."""

from collections.abc import Callable

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, ValueLike
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.dma_port import CAUSE_BITS
from rtl.base.layouts import INSTRUCTION_LAYOUT
from rtl.base.plant import passed_on, planted
from rtl.contract.config import Config
from rtl.contract.formats import FORMATS
from rtl.contract.isa import OPCODE_QUEUE, PATTERN, AluOp, Cause, Opcode, Queue, Reduce, Update, Wait
from rtl.contract.memmap import PARTITION_STRIDE_BYTES, Space
from rtl.contract.rules import RULES, OpcodeRule, OperandRule
from rtl.issue.pattern import PatternCheck

__all__ = ["CHECKED", "Check"]

CHECKED = data.StructLayout({"word": INSTRUCTION_LAYOUT, "cause": CAUSE_BITS, "address": 64})
"""An instruction and what is wrong with it: cause 0 if nothing. The address belongs to the cause."""

_LAST_STEP = 4
_OPERANDS = ("src0", "src1", "dst")
_FP32_BYTES = 4
_HEADER = (
    "accumulate",
    *("op0", "op1", "reverse0", "reverse1", "column0", "column1", "reduce", "store", "axes", "negate", "flags"),
    *("header_reserved", "header_pad"),
)


class Check(wiring.Component):
    """Checks the instructions of one queue against rtl.contract.rules.

    Timing: the word at `i` is looked at in place and taken when `o` is taken; `o` is valid one cycle
    after the word if it has no operands, else 5 cycles after, so a queue does 1 in 7 cycles.
    The fault address of an operand is its first byte; of a semaphore, its address; else 0.
    """

    FAULTS = {
        1: "reserved fields are not looked at",
        2: "every semaphore exists",
        3: "the shapes of source and destination may differ",
        4: "any ring exists",
        5: "every operator exists",
        **{10 + n: text for n, text in PatternCheck.FAULTS.items()},
    }

    def __init__(self, cfg: Config, queue: int, plant: ValueLike = 0):
        self.cfg = cfg
        self.queue = Queue(queue)
        self.plant = plant
        self.rules: dict[Opcode, OpcodeRule] = {
            opcode: rule
            for opcode, rule in RULES.items()
            if OPCODE_QUEUE.get(opcode, self.queue) == self.queue
        }
        super().__init__(
            {
                "i": In(stream.Signature(INSTRUCTION_LAYOUT)),
                "o": Out(stream.Signature(CHECKED)),
            }
        )

    def _operand_rules(self, name: str) -> dict[Opcode, OperandRule]:
        return {
            opcode: operand
            for opcode, rule in self.rules.items()
            for operand in rule.operands
            if operand.field == name
        }

    def _reserved(self, rule: OpcodeRule) -> Value:
        """Whether a field that `rule` does not name is set."""
        word = self.i.payload
        free = [*rule.fields, *(f"column{'ab'.index(name)}" for name in rule.columns)]
        free += ["reduce", "store"] if rule.sums else []
        parts = [Value.cast(word[name]) for name in _HEADER if name not in free]
        named = [operand.field for operand in rule.operands]
        for name in _OPERANDS:
            fields = [f.name for f in PATTERN] if name not in named else ["reserved"]
            parts += [Value.cast(word[f"{name}_{field}"]) for field in fields]
        for name, column, immediate in (("a", word.column0, word.imm0), ("b", word.column1, word.imm1)):
            if name in rule.columns:
                parts += [immediate[32:], immediate[24:32] & column.replicate(8)]
            elif f"imm{'ab'.index(name)}" not in rule.immediates:
                parts.append(immediate)
        if rule.sums:
            # b is there to be loaded; the accumulator's place, to be stored
            idle = word.reduce != Reduce.LOAD_REDUCE
            parts += [Mux(idle, word.imm1[:32], 0), idle & word.column1, word.imm2[24:]]
            parts.append(Mux(word.store, 0, word.imm2[:24]))
        elif "imm2" not in rule.immediates:
            parts.append(word.imm2)
        return Cat(*parts).any()

    def _operators(self, rule: OpcodeRule) -> Value:
        """Whether an operator does not exist, or goes with no other."""
        word = self.i.payload
        wrong: list[Value] = []
        for name, legal in (("op0", rule.op0), ("op1", rule.op1)):
            if legal:
                wrong.append(~Cat(*(word[name] == op for op in legal)).any())
        if rule.op1:
            of_bits = [Value.cast(word[name])[5] for name in ("op0", "op1")]
            passes = [word[name] == AluOp.BYPASS for name in ("op0", "op1")]
            wrong.append(Cat(*of_bits).any() & ~((of_bits[0] | passes[0]) & (of_bits[1] | passes[1])))
        if rule.sums:
            wrong.append(word.store & (word.reduce == Reduce.IDLE))
        return Cat(*wrong).any() if wrong else Const(0, 1)

    def _header(self, m: Module) -> tuple[Signal, Signal]:
        """Cause and address of what is wrong outside the operands."""
        word = self.i.payload
        cause = Signal(CAUSE_BITS)
        address = Signal(64)
        known = Signal()
        reserved = Signal()
        operators = Signal()
        with m.Switch(word.opcode):
            for opcode, rule in self.rules.items():
                with m.Case(opcode):
                    m.d.comb += [
                        known.eq(1),
                        reserved.eq(self._reserved(rule)),
                        operators.eq(self._operators(rule) & ~planted(self.plant, 5)),
                    ]
        kinds = (word.wait0 > max(Wait)) | (word.wait1 > max(Wait)) | (word.update > max(Update))
        illegal = Signal()
        m.d.comb += illegal.eq(~known | ((reserved | kinds) & ~planted(self.plant, 1)))
        no_ring = (word.imm0 >= self.cfg.dma.rings) & ~planted(self.plant, 4)
        bad_ring = no_ring | (word.imm1 == 0) | (word.imm1[32:] != 0)
        with m.If(illegal):
            m.d.comb += cause.eq(Cause.ILLEGAL_OPCODE)
        with m.Elif((word.opcode == Opcode.DMA_TRIGGER) & bad_ring):
            m.d.comb += cause.eq(Cause.BAD_RING)
        with m.Elif(operators):
            m.d.comb += cause.eq(Cause.BAD_OPERATOR)
        # Later ones win: wait0 goes before wait1 before update, all before the ring.
        for kind in ("update", "wait1", "wait0"):
            index = Value.cast(word[f"{kind}_semaphore"])
            missing = (word[kind] != 0) & (index >= self.cfg.issue.semaphores) & ~planted(self.plant, 2)
            with m.If(~illegal & missing):
                m.d.comb += [
                    cause.eq(Cause.BAD_SEMAPHORE),
                    address.eq(Cat(Const(0, 2), index) | (Space.SEMAPHORES << 40)),
                ]
        return cause, address

    def _operands(self, m: Module, step: Signal) -> tuple[Value, Signal, Signal]:
        """Whether there are operands, and cause and address of what is wrong with them in the last step."""
        word = self.i.payload
        cause = Signal(CAUSE_BITS)
        address = Signal(64)
        findings: list[tuple[Value, Value, Value]] = []  # in order of importance
        elements: list[Value] = []
        checks: dict[str, PatternCheck] = {}
        used: Value = Const(0, 1)
        for name in _OPERANDS:
            rules = self._operand_rules(name)
            if not rules:
                continue
            check = PatternCheck(self.cfg, rules, passed_on(self.plant, *range(11, 20)))
            m.submodules[f"check_{name}"] = check
            checks[name] = check
            m.d.comb += [check.opcode.eq(word.opcode), check.step.eq(step), check.axes.eq(word.axes)]
            m.d.comb += [check.pattern[f.name].eq(word[f"{name}_{f.name}"]) for f in PATTERN]
            has = Cat(*(word.opcode == opcode for opcode in rules)).any()
            offset = Signal(40, name=f"{name}_first_byte")
            start = word[f"{name}_partition_start"] * PARTITION_STRIDE_BYTES
            m.d.comb += offset.eq(start + word[f"{name}_offset"])
            findings.append((has & (check.cause != 0), check.cause, Cat(offset, word[f"{name}_space"])))
            elements.append(check.elements)
            used = used | has
        if any(rule.columns or rule.sums for rule in self.rules.values()):
            findings += self._columns(m)
        if len(elements) > 1:
            findings += self._shapes(checks, findings[-1][2] if len(elements) == 2 else findings[len(elements) - 1][2])
        for wrong, its_cause, its_address in reversed(findings):
            with m.If(wrong):
                m.d.comb += [cause.eq(its_cause), address.eq(its_address)]
        return used, cause, address

    def _columns(self, m: Module) -> list[tuple[Value, Value, Value]]:
        """The columns a and b beside src0 and the accumulator's place beside dst: FP32, in SBUF."""
        word = self.i.payload
        found: list[tuple[Value, Value, Value]] = []
        for used, place, beside in (
            (word.column0, word.imm0, "src0"),
            (word.column1, word.imm1, "src0"),
            (word.store, word.imm2, "dst"),
        ):
            at = place[:24]
            whole = Signal(40)
            m.d.comb += whole.eq(word[f"{beside}_partition_start"] * PARTITION_STRIDE_BYTES + at)
            address = Cat(whole, Const(Space.SBUF, 24))
            misaligned = place[:2].any()
            cause = Mux(misaligned, Cause.MISALIGNED, Cause.OUT_OF_RANGE)
            outside = at + _FP32_BYTES > self.cfg.sbuf.partition_bytes
            found.append((used & (misaligned | outside), cause, address))
        return found

    def _shapes(self, checks: dict[str, PatternCheck], where: Value) -> list[tuple[Value, Value, Value]]:
        """What operands must have in common; the address is that of the destination."""
        word = self.i.payload

        def of(want: Callable[[OpcodeRule], bool]) -> Value:
            found = [word.opcode == op for op, rule in self.rules.items() if want(rule)]
            return Cat(*found).any() if found else Const(0, 1)

        first, last = checks["src0"], checks["dst"]
        reduces = of(lambda rule: rule.reduces)
        both = of(lambda rule: len(rule.operands) == 2)
        all_three = of(lambda rule: len(rule.operands) == 3)
        different = ((both & ~reduces) | all_three) & (first.elements != last.elements)
        different |= reduces & (first.groups != last.elements)
        alike = of(lambda rule: rule.same_partitions)
        different |= alike & (word.src0_partition_count != word.dst_partition_count)
        found: list[tuple[Value, Value, Value]] = []
        if "src1" in checks:
            different |= all_three & (checks["src1"].elements != last.elements)
            different |= all_three & (word.src1_partition_count != word.dst_partition_count)
            inside = (word.src0_space == Space.PSUM) & (word.src1_space == Space.PSUM)
            found.append((all_three & inside, Const(Cause.BAD_SPACE, CAUSE_BITS), where))
        bits = of(lambda rule: bool(rule.op0)) & Cat(Value.cast(word.op0)[5], Value.cast(word.op1)[5]).any()
        sizes = [self._integer_bytes(word[f"{name}_dtype"]) for name in ("src0", "dst")]
        mixed = (sizes[0] == 0) | (sizes[0] != sizes[1])
        if "src1" in checks:
            mixed |= all_three & (self._integer_bytes(word.src1_dtype) != sizes[0])
        found.append((bits & mixed, Const(Cause.ILLEGAL_DTYPE, CAUSE_BITS), where))
        found.append((different & ~planted(self.plant, 3), Const(Cause.BAD_PATTERN, CAUSE_BITS), where))
        return found

    @staticmethod
    def _integer_bytes(dtype: Value) -> Value:
        """Bytes of an integer format, 0 for all others."""
        return Cat(
            *(Cat(*(dtype == f.code for f in FORMATS.values() if f.integer and f.bytes == n)).any() for n in (1, 2, 4))
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        step = Signal(3)  # 0: header and innermost dimension
        done = Signal()
        cause = Signal(CAUSE_BITS)
        address = Signal(64)
        header_cause, header_address = self._header(m)
        used, operand_cause, operand_address = self._operands(m, step)

        m.d.comb += [
            self.o.valid.eq(done),
            self.o.payload.word.eq(self.i.payload),
            self.o.payload.cause.eq(cause),
            self.o.payload.address.eq(address),
            self.i.ready.eq(done & self.o.ready),
        ]
        with m.If(done):
            with m.If(self.o.ready):
                m.d.sync += [done.eq(0), step.eq(0)]
        with m.Elif(self.i.valid):
            m.d.sync += step.eq(step + 1)
            with m.If(step == 0):
                m.d.sync += [
                    cause.eq(header_cause),
                    address.eq(header_address),
                    done.eq((header_cause != 0) | ~used),
                ]
            with m.If(step == _LAST_STEP):
                m.d.sync += [cause.eq(operand_cause), address.eq(operand_address), done.eq(1)]
        return m
