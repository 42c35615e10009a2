"""The control registers of a core behind the host port: rtl.contract.memmap.Control."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, ValueLike
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.dispatch import SEQUENCE_BITS
from rtl.base.dma_port import CAUSE_BITS, ENDPOINT_STATUS, SEMAPHORE_INDEX_BITS
from rtl.base.fault import fault
from rtl.contract import memmap
from rtl.contract.config import Config
from rtl.contract.isa import COPY_QUEUES, Queue
from rtl.contract.memmap import CoreId, EndpointRegister, EngineRegister, QueueRegister, RingRegister
from rtl.contract.timing import STALLS, WINDOWS, Engine
from rtl.issue.copies import COPY_STATUS
from rtl.issue.counters import COUNTER_BITS, STALL, counter_index
from rtl.issue.parts import PART_INDEX
from rtl.issue.queue import QUEUE_STATUS
from rtl.issue.release import RING_COUNTS
from rtl.issue.run import CLIENT_BITS

__all__ = ["FAULT_RECORD", "Control"]

FAULT_RECORD = data.StructLayout({"cause": CAUSE_BITS, "sequence": SEQUENCE_BITS, "address": 64})
"""Why a ring halted."""

_BLOCK = 0x1000


class Control(wiring.Component):
    """Host port: a request is a cycle with `host_valid`; `host_rdata` of a read is right exactly two cycles
    after it. A request each cycle is possible. Writes to anything but RUN, CLEAR, BASE and COUNT, and addresses
    that name no register, do nothing and read 0. Registers may be written while nothing runs.

    `client` with `base` and `count` looks into the regions that rtl.issue.run keeps. CONFLICT counts
    the cycles in which a port of `refused` was high. `endpoint` is shown as it is; it is 0 without a link.
    `link_value`: the register of the port at `link_address` (LINK), in the same cycle; 0 without a link.
    `part_value`: the counter of `part` (PART), in the same cycle; `gpsimd_value`: that of a GPSIMD core (GPSIMD).
    """

    def __init__(self, cfg: Config, ports: int):
        self.cfg = cfg
        self.ports = ports
        rings = cfg.dma.rings
        counters = counter_index(Engine.DMA, STALL + len(STALLS[Engine.DMA]))
        super().__init__(
            {
                "host_valid": In(1),
                "host_write": In(1),
                "host_address": In(16),
                "host_wdata": In(64),
                "host_rdata": Out(64),
                "run": Out(1),
                "keep": Out(1),
                "wipe": Out(1),
                "freeze": Out(1),
                "write_base": Out(1),
                "write_count": Out(1),
                "client": Out(CLIENT_BITS),
                "write_data": Out(64),
                "base": In(64),
                "count": In(64),
                "clear": In(1),
                "running": In(1),
                "done": In(1),
                "fault": In(1),
                "core_id": In(CoreId.BITS),
                "cycles": In(COUNTER_BITS),
                "first": In(COUNTER_BITS).array(len(WINDOWS)),
                "last": In(COUNTER_BITS).array(len(WINDOWS)),
                "hbm_read": In(COUNTER_BITS),
                "hbm_written": In(COUNTER_BITS),
                "queue": In(QUEUE_STATUS).array(len(Queue)),
                "ring": In(RING_COUNTS).array(rings),
                "ring_fault": In(FAULT_RECORD).array(rings),
                "copies": In(COPY_STATUS).array(len(COPY_QUEUES)),
                "values": In(COUNTER_BITS).array(counters),
                "refused": In(ports),
                "endpoint": In(ENDPOINT_STATUS),
                "link_address": Out(8),
                "link_value": In(64),
                "gpsimd_core": Out(3),
                "gpsimd_index": Out(5),
                "gpsimd_value": In(COUNTER_BITS),
                "part": Out(PART_INDEX),
                "part_value": In(COUNTER_BITS),
                "index": Out(SEMAPHORE_INDEX_BITS),
                "value": In(32),
            }
        )

    def _fault(self, record: data.View) -> Value:
        sequence = Value.cast(record.sequence) & ~fault("the sequence number is not in the fault register").replicate(
            SEQUENCE_BITS
        )
        return Cat(record.cause, Const(0, 8), sequence)

    def _blocks(self, conflicts: list[Signal]) -> dict[int, dict[int, ValueLike]]:
        """Registers by block (address bits 15:12) and offset in it."""
        top = memmap.Control
        blocks: dict[int, dict[int, ValueLike]] = {
            0: {
                top.RUN: self.running,
                top.STATUS: Cat(self.done, self.fault),
                top.CYCLES: self.cycles,
                top.CORE_ID: self.core_id,
                top.HBM_READ: self.hbm_read,
                top.HBM_WRITTEN: self.hbm_written,
            }
        }
        for n, engine in enumerate(WINDOWS):
            blocks[0][top[f"{engine.name}_FIRST"]] = self.first[n]
            blocks[0][top[f"{engine.name}_LAST"]] = self.last[n]
        queues: dict[int, ValueLike] = {}
        for q in Queue:
            status = self.queue[q]
            queues |= {
                q * 0x100 + QueueRegister.BASE: self.base,
                q * 0x100 + QueueRegister.COUNT: self.count,
                q * 0x100 + QueueRegister.ISSUED: status.issued,
                q * 0x100 + QueueRegister.RETIRED: status.retired,
                q * 0x100 + QueueRegister.FAULT: self._fault(status),
                q * 0x100 + QueueRegister.FAULT_ADDRESS: status.address,
            }
        for q, copies in zip(COPY_QUEUES, self.copies, strict=True):
            queues |= {
                q * 0x100 + QueueRegister.COPIES: copies.taken,
                q * 0x100 + QueueRegister.COPIED: copies.completed,
                q * 0x100 + QueueRegister.COPY_FAULT: self._fault(copies),
                q * 0x100 + QueueRegister.COPY_FAULT_ADDRESS: copies.address,
            }
        rings: dict[int, ValueLike] = {}
        for r in range(self.cfg.dma.rings):
            rings |= {
                r * 0x100 + RingRegister.BASE: self.base,
                r * 0x100 + RingRegister.COUNT: self.count,
                r * 0x100 + RingRegister.RELEASED: self.ring[r].released,
                r * 0x100 + RingRegister.COMPLETED: self.ring[r].completed,
                r * 0x100 + RingRegister.FAULT: self._fault(self.ring_fault[r]),
                r * 0x100 + RingRegister.FAULT_ADDRESS: self.ring_fault[r].address,
            }
        names = [r.name.lower() for r in EndpointRegister]
        swapped = fault("counters of the endpoint stand in each other's place")
        endpoint: dict[int, ValueLike] = {
            r: Mux(swapped, self.endpoint[names[n - 1]], self.endpoint[names[n]])
            for n, r in enumerate(EndpointRegister)
        }
        engines: dict[int, ValueLike] = {}
        for e in Engine:
            for n in range(STALL + len(STALLS[e])):
                engines[e * 0x100 + EngineRegister.BUSY + 8 * n] = self.values[counter_index(e, n)]
        blocks[top.QUEUE // _BLOCK] = queues
        blocks[top.RING // _BLOCK] = rings
        blocks[top.ENDPOINT // _BLOCK] = endpoint
        blocks[top.ENGINE // _BLOCK] = engines
        blocks[top.CONFLICT // _BLOCK] = {8 * n: conflict for n, conflict in enumerate(conflicts)}
        return blocks

    def elaborate(self, platform: object) -> Module:
        m = Module()
        address = self.host_address
        top = memmap.Control
        block = address[12:16]
        conflicts = [Signal(COUNTER_BITS, name=f"conflict_{n}") for n in range(self.ports)]
        for n, conflict in enumerate(conflicts):
            with m.If(self.clear):
                m.d.sync += conflict.eq(0)
            with m.Elif(self.running & self.refused[n]):
                m.d.sync += conflict.eq(conflict + 1)

        # The client that a queue's or ring's registers belong to.
        in_queues = Signal()
        in_rings = Signal()
        slot = address[8:12]
        write = Signal()
        m.d.comb += [
            in_queues.eq((block == top.QUEUE // _BLOCK) & (slot < len(Queue))),
            in_rings.eq((block == top.RING // _BLOCK) & (slot < self.cfg.dma.rings)),
            self.client.eq(slot),
            write.eq(self.host_valid & self.host_write),
            self.write_data.eq(self.host_wdata),
            self.run.eq(write & (address == top.RUN) & self.host_wdata[0]),
            self.keep.eq(self.host_wdata[1]),
            self.wipe.eq(write & (address == top.CLEAR) & self.host_wdata[0]),
            self.freeze.eq(write & (address == top.RUN) & ~self.host_wdata[0]),
            self.index.eq(address[3:][:SEMAPHORE_INDEX_BITS]),
        ]
        with m.If(in_rings):
            m.d.comb += self.client.eq(slot + len(Queue))
        with m.If(write & ~self.running & ~self.clear & (in_queues | in_rings)):
            m.d.comb += [
                self.write_base.eq(address[:8] == QueueRegister.BASE),
                self.write_count.eq(address[:8] == QueueRegister.COUNT),
            ]

        # Reads: one register for each block, then one for the choice between blocks.
        chosen = Signal(4)
        semaphore, port, part = Signal(64), Signal(64), Signal(64)
        m.d.comb += [
            self.link_address.eq(address[:8]),
            self.part.eq(address[3:12]),
            self.gpsimd_index.eq(address[3:8]),
            self.gpsimd_core.eq(address[8:11]),
        ]
        with m.If(self.host_valid):
            m.d.sync += chosen.eq(block)
            with m.If((address >= top.SEMAPHORE) & (address[3:12] < self.cfg.issue.semaphores) & (address[:3] == 0)):
                m.d.sync += semaphore.eq(self.value.as_signed())
            with m.Else():
                m.d.sync += semaphore.eq(0)
            with m.If(address[8:] == top.LINK >> 8):
                m.d.sync += port.eq(self.link_value)
            with m.Else():
                m.d.sync += port.eq(0)
            m.d.sync += part.eq(Mux(address[:3] == 0, self.part_value, 0))
        second = Signal(64)
        firsts: dict[int, Signal] = {
            top.SEMAPHORE // _BLOCK: semaphore,
            top.LINK // _BLOCK: port,
            top.PART // _BLOCK: part,
        }
        for number, registers in self._blocks(conflicts).items():
            firsts[number] = first = Signal(64, name=f"block_{number}")
            with m.If(self.host_valid & (block == number)):
                m.d.sync += first.eq(0)
                with m.Switch(address[:12]):
                    for offset, value in registers.items():
                        with m.Case(offset):
                            m.d.sync += first.eq(value)
                    if number == top.GPSIMD // _BLOCK:
                        with m.Default():
                            with m.If((address[11:] == top.GPSIMD >> 11) & (address[:3] == 0)):
                                m.d.sync += first.eq(self.gpsimd_value)
        with m.Switch(chosen):
            for number, first in firsts.items():
                with m.Case(number):
                    m.d.comb += second.eq(first)
        late = Signal(64)
        m.d.sync += late.eq(second)
        m.d.sync += self.host_rdata.eq(second)
        with m.If(fault("a control register is read a cycle late")):
            m.d.sync += self.host_rdata.eq(late)
        return m
