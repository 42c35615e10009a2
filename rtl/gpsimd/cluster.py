"""The cores of the GPSIMD engine, and all that they share: connects, in the engine's clock."""

from amaranth.hdl import Cat, DomainRenamer, Module, Mux, ResetInserter, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.base.dma_port import CAUSE_BITS, SEMAPHORE_INDEX_BITS, SEMAPHORE_UPDATE
from rtl.base.engine_frame import engine_ports
from rtl.base.fault import fault
from rtl.base.layouts import DESCRIPTOR_LAYOUT, layout
from rtl.base.pattern import operand
from rtl.base.placed import Placed
from rtl.contract.config import Config
from rtl.contract.gpsimd import LOAD, Counter, cores, lanes
from rtl.contract.isa import Opcode
from rtl.gpsimd.barrier import Barrier
from rtl.gpsimd.bus import Bus
from rtl.gpsimd.commands import Commands, Stage
from rtl.gpsimd.copies import ENDED_BITS, Copies
from rtl.gpsimd.layouts import MOVED_BITS, Place
from rtl.gpsimd.mailbox import CoreMailbox
from rtl.gpsimd.rows import RowMover
from rtl.gpsimd.shared_port import share_port
from rtl.gpsimd.tile import Tile
from rtl.gpsimd.waiting import TIME_BITS

__all__ = ["STATE_BITS", "Cluster", "tile_domains"]

STATE_BITS = 4


def tile_domains(cfg: Config) -> tuple[str, ...]:
    """Clock domains of the tiles: each has the engine's edges while its core runs and is awake."""
    return tuple(f"gpsimd_{k}" for k in range(cores(cfg.partitions)))


class Cluster(wiring.Component):
    """Everything on the engine's own clock, which is its "sync", and the tiles on `tile_domains`.

    filled, fills, as Commands has them. turn: whose semaphore `index` and `update` are for, each core in turn.
    copy: descriptors that cores push; copies_ended, copies_busy, copies_cause: of their ring, as Copies has them.
    state: of each core, a gpsimd.Counter; retires: an instruction of it; moves: how many passes of its vector unit;
    sbuf_bytes: moved for it.
    """

    def __init__(self, cfg: Config):
        self.cfg = cfg
        self.cores = cores(cfg.partitions)
        count = self.cores
        super().__init__(
            {
                **engine_ports(cfg),
                "active": Out(1),
                "clocks": Out(count),
                "filled": In(count),
                "fills": Out(count),
                "mtime": In(TIME_BITS),
                "index": Out(SEMAPHORE_INDEX_BITS),
                "value": In(signed(32)),
                "update": Out(stream.Signature(SEMAPHORE_UPDATE)),
                "copy": Out(stream.Signature(DESCRIPTOR_LAYOUT)),
                "copies_ended": In(ENDED_BITS),
                "copies_busy": In(1),
                "copies_cause": In(CAUSE_BITS),
                "counter": Out(range(len(Counter))).array(count),
                "counter_value": In(TIME_BITS).array(count),
                "state": Out(STATE_BITS).array(count),
                "retires": Out(count),
                "moves": Out(2).array(count),
                "sbuf_bytes": Out(MOVED_BITS).array(count),
                "printed": Out(1),
                "printer": Out(3),
                "byte": Out(8),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cfg, count = self.cfg, self.cores
        m.submodules.commands = commands = Commands(cfg)
        m.submodules.mover = mover = RowMover(cfg)
        m.submodules.bus = bus = Bus(cfg)
        m.submodules.barrier = barrier = Barrier(count)
        copies = Copies(cfg)
        starts = commands.stage == Stage.START
        word = commands.word
        size = f"{lanes(cfg.partitions)}x{cfg.gpsimd.local_bytes}x{cfg.sbuf.partition_bytes}x{cfg.issue.semaphores}"
        size += "v" if cfg.gpsimd.vectors else ""
        tiles = [Placed(f"gpsimd_tile_{size}", lambda: Tile(cfg), faults=True) for _ in range(count)]
        boxes = [CoreMailbox(cfg) for _ in range(count)]
        turn = Signal(count, init=1)
        m.d.sync += turn.eq(turn.rotate_left(1))

        connect(m, flipped(self.queue.command), commands.command)
        m.d.comb += [
            self.queue.done.eq(commands.done),
            self.queue.cause.eq(commands.cause),
            self.queue.address.eq(commands.address),
            self.active.eq(commands.stage != Stage.NONE),
            commands.filled.eq(self.filled),
            self.fills.eq(commands.fills),
            commands.busy.eq(Cat(box.busy for box in boxes).any() | copies.active),
            barrier.start.eq(starts),
            barrier.run.eq(commands.run),
            barrier.arrives.eq(Cat(box.arrives for box in boxes)),
        ]
        self._memory(m, commands, mover, bus, copies, tiles)
        self._copies(m, commands, copies, tiles)
        for k, (tile, box, domain) in enumerate(zip(tiles, boxes, tile_domains(cfg), strict=True)):
            m.submodules[f"tile_{k}"] = DomainRenamer(domain)(tile)
            m.submodules[f"mailbox_{k}"] = ResetInserter(starts)(box)
            run = commands.run[k]
            awake = ~tile.waits | box.pending.any() | fault("the clock of a core that sleeps goes on")
            moves = commands.chosen[k] & ((commands.stage == Stage.MOVE) | starts)
            end = commands.ends[k]
            asked, pushes = tile.o.payload, Signal(name=f"pushes_{k}")
            m.d.comb += [
                pushes.eq(tile.o.valid & run & (asked.place == Place.PUSH)),
                copies.push[k].eq(pushes & ~box.busy),  # what it has stored before is there
                copies.address[k].eq(asked.access.data),
                copies.pc[k].eq(tile.pc),
                box.copies.eq(copies.done[k]),
                box.copies_free.eq(copies.free[k]),
            ]
            m.d.comb += [
                self.clocks[k].eq((run & awake) | moves),
                tile.run.eq(run),
                tile.entry.eq(word.imm0[:32]),
                tile.hart.eq(k),
                tile.mtime.eq(self.mtime),
                tile.pending.eq(box.pending),
                tile.reply.eq(box.reply),
                tile.reply_valid.eq(box.reply_valid),
                box.i.valid.eq(tile.o.valid & run & ~pushes),
                box.i.payload.eq(tile.o.payload),
                tile.o.ready.eq(Mux(pushes, copies.taken[k], box.i.ready)),
                box.core.eq(k),
                box.argument.eq(word),
                box.mtime.eq(self.mtime),
                box.turn.eq(turn[k]),
                box.value.eq(self.value),
                box.update.ready.eq(self.update.ready & turn[k]),
                box.barriers.eq(barrier.passed),
                self.counter[k].eq(box.counter),
                box.counter_value.eq(self.counter_value[k]),
                bus.request[k].eq(box.request),
                bus.held[k].eq(box.held),
                box.served.eq(bus.served[k]),
                box.answered.eq(bus.answered[k]),
                box.answer.eq(bus.answer),
                end.ended.eq(tile.ended | box.ended),
                end.result.eq(Mux(tile.ended, tile.result, box.result)),
                end.trapped.eq(box.trapped),
                end.lost.eq(tile.lost),
                end.cause.eq(Mux(tile.lost, tile.cause, box.result[:5])),
                end.pc.eq(Mux(tile.lost, tile.pc, box.trap_pc)),
                self.retires[k].eq(tile.retires),
                self.moves[k].eq(tile.moves),
            ]
            with m.If(turn[k]):
                m.d.comb += [
                    self.index.eq(box.index),
                    self.update.valid.eq(box.update.valid),
                    self.update.payload.eq(box.update.payload),
                ]
            in_sbuf = box.busy & ((box.held.place == Place.ROWS) | (box.held.place == Place.LANES))
            m.d.comb += self.sbuf_bytes[k].eq(Mux(bus.served[k], bus.bytes, 0))
            if cfg.gpsimd.vectors:
                lanes_of = bus.lanes[k]
                m.d.comb += [
                    lanes_of.valid.eq(tile.lane_valid & ~box.busy),  # behind the stores of the core itself
                    lanes_of.request.eq(tile.lane_request),
                    tile.lane_ready.eq(lanes_of.ready),
                    tile.lane_reply.eq(lanes_of.reply),
                    self.sbuf_bytes[k].eq(Mux(bus.served[k], bus.bytes, 0) + tile.lane_moved),
                ]
                in_sbuf |= tile.lane_valid
                shared, free = bus.shared[k], ~box.busy  # rows behind the stores of the core itself
                m.d.comb += [
                    shared.line_en.eq(tile.shared_line_en & free),
                    shared.line_row.eq(tile.shared_line_row),
                    shared.row_en.eq(tile.shared_row_en & free),
                    shared.row.eq(tile.shared_row),
                    shared.row_data.eq(tile.shared_row_data),
                    shared.row_mask.eq(tile.shared_row_mask),
                    tile.shared_line_ready.eq(shared.line_ready),
                    tile.shared_line.eq(shared.line),
                    tile.shared_row_ready.eq(shared.row_ready),
                ]
            state = self.state[k]
            with m.If(~run):
                m.d.comb += state.eq(Counter.IDLE)
            with m.Elif((tile.state == Counter.SLEEP) & box.for_others):
                m.d.comb += state.eq(Counter.SEMAPHORE)
            with m.Elif((tile.state == Counter.MEMORY) & in_sbuf):
                m.d.comb += state.eq(Counter.SBUF)
            with m.Elif((tile.state == Counter.MEMORY) & pushes):
                m.d.comb += state.eq(Counter.DMA)
            with m.Else():
                m.d.comb += state.eq(tile.state)
        self._status(m, commands, mover, copies)
        return m

    def _copies(self, m: Module, commands: Commands, copies: Copies, tiles: list[Placed]) -> None:
        """Those of a run, which is done when all have ended."""
        m.submodules.copies = ResetInserter(commands.done)(copies)
        connect(m, copies.o, flipped(self.copy))
        m.d.comb += [
            copies.ended.eq(self.copies_ended),
            copies.busy.eq(self.copies_busy),
            copies.cause.eq(self.copies_cause),
            commands.copy_failed.eq(copies.failed),
            commands.copy_fault.eq(copies.told),
            *(own.eq(tile.line) for own, tile in zip(copies.line, tiles, strict=True)),
        ]

    def _memory(
        self, m: Module, commands: Commands, mover: RowMover, bus: Bus, copies: Copies, tiles: list[Placed]
    ) -> None:
        """SBUF belongs to the mover between runs; the bus is idle then."""
        word = commands.word
        stores = word.opcode == Opcode.GP_STORE
        offset = data.View(layout(LOAD), word.imm0).offset
        row_bytes = 4 * lanes(self.cfg.partitions)
        moving = commands.stage == Stage.MOVE
        m.d.comb += [
            mover.start.eq(commands.move),
            mover.store.eq(stores),
            mover.first.eq(offset >> row_bytes.bit_length() - 1),
            mover.pattern.eq(Mux(stores, operand(word, "dst").as_value(), operand(word, "src0").as_value())),
            commands.moved.eq(mover.done),
            self.printed.eq(bus.printed),
            self.printer.eq(bus.printer),
            self.byte.eq(bus.byte),
        ]
        share_port(m, self.sbuf_read, mover.sbuf_read, bus.sbuf_read, moving)
        share_port(m, self.sbuf_write, mover.sbuf_write, bus.sbuf_write, moving)
        for k, tile in enumerate(tiles):
            chosen = commands.chosen[k]
            m.d.comb += [
                tile.row_en.eq(mover.row_en & chosen),
                tile.line_en.eq((mover.line_en & chosen) | copies.line_en[k]),
                tile.row.eq(Mux(moving, mover.row, copies.row)),
                tile.row_data.eq(mover.row_data),
            ]
            with m.If(commands.fills[k]):
                m.d.sync += tile.tohost.eq(word.imm1[:32])
            with m.If(chosen):
                m.d.comb += mover.line.eq(tile.line)

    def _status(self, m: Module, commands: Commands, mover: RowMover, copies: Copies) -> None:
        """Busy if any core is or an element moves, else what the lowest core that is awake waits for; behind the last
        core its copies."""
        status = self.queue.status
        m.d.comb += [status.holds.eq(self.active), status.opcode.eq(commands.word.opcode)]
        with m.Switch(commands.stage):
            with m.Case(Stage.MOVE):
                m.d.comb += status.state.eq(Mux(mover.moves, Counter.BUSY, Counter.SBUF))
            with m.Case(Stage.RUN):
                for asleep in (True, False):
                    for k in reversed(range(self.cores)):
                        state = self.state[k]
                        sleeps = (state == Counter.SLEEP) | (state == Counter.SEMAPHORE)
                        with m.If(commands.run[k] & (sleeps if asleep else ~sleeps)):
                            m.d.comb += status.state.eq(state)
                with m.If(Cat(state == Counter.BUSY for state in self.state).any()):
                    m.d.comb += status.state.eq(Counter.BUSY)
            with m.Case(Stage.END):
                m.d.comb += status.state.eq(Mux(copies.active, Counter.DMA, Counter.MEMORY))
            with m.Default():
                m.d.comb += status.state.eq(Counter.MEMORY)
