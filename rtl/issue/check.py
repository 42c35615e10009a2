"""Decides whether an instruction may run, before anything of it does."""

from amaranth.hdl import Cat, Const, Module, Signal, Value, ValueLike
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.dma_port import CAUSE_BITS
from rtl.base.layouts import INSTRUCTION_LAYOUT
from rtl.base.plant import passed_on, planted
from rtl.contract.config import Config
from rtl.contract.isa import OPCODE_QUEUE, PATTERN, Cause, Opcode, Queue, Update, Wait
from rtl.contract.memmap import PARTITION_STRIDE_BYTES, Space
from rtl.contract.rules import RULES, OpcodeRule, OperandRule
from rtl.issue.pattern import PatternCheck

__all__ = ["CHECKED", "Check"]

CHECKED = data.StructLayout({"word": INSTRUCTION_LAYOUT, "cause": CAUSE_BITS, "address": 64})
"""An instruction and what is wrong with it: cause 0 if nothing. The address belongs to the cause."""

_LAST_STEP = 4
_OPERANDS = ("src0", "src1", "dst")
_HEADER = (
    *("op0", "op1", "reverse0", "reverse1", "column0", "column1", "reduce", "store", "axes", "negate", "flags"),
    *("header_reserved", "header_pad"),
)
_IMMEDIATES = ("imm0", "imm1", "imm2")


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
        parts = [Value.cast(word[name]) for name in _HEADER]
        named = [operand.field for operand in rule.operands]
        for name in _OPERANDS:
            fields = [f.name for f in PATTERN] if name not in named else ["reserved"]
            parts += [Value.cast(word[f"{name}_{field}"]) for field in fields]
        parts += [word[name] for name in _IMMEDIATES if name not in rule.immediates]
        if not rule.accumulate:
            parts.append(word.accumulate)
        return Cat(*parts).any()

    def _header(self, m: Module) -> tuple[Signal, Signal]:
        """Cause and address of what is wrong outside the operands."""
        word = self.i.payload
        cause = Signal(CAUSE_BITS)
        address = Signal(64)
        known = Signal()
        reserved = Signal()
        with m.Switch(word.opcode):
            for opcode, rule in self.rules.items():
                with m.Case(opcode):
                    m.d.comb += [known.eq(1), reserved.eq(self._reserved(rule))]
        kinds = (word.wait0 > max(Wait)) | (word.wait1 > max(Wait)) | (word.update > max(Update))
        illegal = Signal()
        m.d.comb += illegal.eq(~known | ((reserved | kinds) & ~planted(self.plant, 1)))
        no_ring = (word.imm0 >= self.cfg.dma.rings) & ~planted(self.plant, 4)
        bad_ring = no_ring | (word.imm1 == 0) | (word.imm1[32:] != 0)
        with m.If(illegal):
            m.d.comb += cause.eq(Cause.ILLEGAL_OPCODE)
        with m.Elif((word.opcode == Opcode.DMA_TRIGGER) & bad_ring):
            m.d.comb += cause.eq(Cause.BAD_RING)
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
        used: Value = Const(0, 1)
        for name in _OPERANDS:
            rules = self._operand_rules(name)
            if not rules:
                continue
            check = PatternCheck(self.cfg, rules, passed_on(self.plant, *range(11, 20)))
            m.submodules[f"check_{name}"] = check
            m.d.comb += [check.opcode.eq(word.opcode), check.step.eq(step)]
            m.d.comb += [check.pattern[f.name].eq(word[f"{name}_{f.name}"]) for f in PATTERN]
            has = Cat(*(word.opcode == opcode for opcode in rules)).any()
            offset = Signal(40, name=f"{name}_first_byte")
            start = word[f"{name}_partition_start"] * PARTITION_STRIDE_BYTES
            m.d.comb += offset.eq(start + word[f"{name}_offset"])
            findings.append((has & (check.cause != 0), check.cause, Cat(offset, word[f"{name}_space"])))
            elements.append(check.elements)
            used = used | has
        if len(elements) == 2:
            both = Cat(*(word.opcode == op for op, rule in self.rules.items() if len(rule.operands) == 2)).any()
            alike = Cat(*(word.opcode == op for op, rule in self.rules.items() if rule.same_partitions)).any()
            different = elements[0] != elements[1]
            different |= alike & (word.src0_partition_count != word.dst_partition_count)
            wrong = both & different & ~planted(self.plant, 3)
            findings.append((wrong, Const(Cause.BAD_PATTERN, CAUSE_BITS), findings[1][2]))
        for wrong, its_cause, its_address in reversed(findings):
            with m.If(wrong):
                m.d.comb += [cause.eq(its_cause), address.eq(its_address)]
        return used, cause, address

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
