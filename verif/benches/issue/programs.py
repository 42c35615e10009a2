"""Random programs for all queues and rings that wait for each other and cannot lock up."""

from dataclasses import dataclass, field

import numpy as np

from rtl.contract.config import Config
from rtl.contract.descriptor import DESCRIPTOR
from rtl.contract.isa import COPY_QUEUES, Opcode, Queue, Update, Wait
from rtl.contract.memmap import Space, address
from verif.benches.issue.words import Fields, copied, legal, opcodes_of, pack
from verif.golden.groups import WeightKinds

__all__ = ["Node", "Program", "random_program"]

_OWN = 24  # semaphores of what the queues' own rings have done, from here on
_FIRST_SET = 32  # semaphores below count what a queue or ring has done; from here each is set once


@dataclass
class Node:
    """An instruction or a descriptor, and the nodes that it waits for."""

    queue: int  # or the ring
    number: int
    fields: Fields
    descriptor: bool = False
    after: list["Node"] = field(default_factory=list)
    signal: tuple[int, int, int, int] | None = None  # semaphore, update, value, value it has then at least
    ended: int = -1  # cycle in which the work was done
    went: int = -1


@dataclass
class Program:
    """Nodes in an order in which they could run one by one."""

    nodes: list[Node]
    queues: list[list[Node]]
    rings: list[list[Node]]
    semaphores: dict[int, int]
    own: dict[int, list[Node]] = field(default_factory=dict[int, list[Node]])  # of DMA_COPY, by queue

    def own_words(self, queue: int) -> list[int]:
        """Descriptors of a queue's own ring."""
        return [DESCRIPTOR.pack(n.fields) for n in self.own.get(queue, [])]

    def words(self, client: int) -> list[int]:
        """HBM contents of a queue (0 to 4) or a ring (5 on)."""
        if client < len(Queue):
            return [pack(n.fields) for n in self.queues[client]]
        return [DESCRIPTOR.pack(n.fields) for n in self.rings[client - len(Queue)]]


def _wait(rng: np.random.Generator, node: Node, producers: list[Node]) -> None:
    for n in range(int(rng.integers(3))):
        if not producers:
            return
        other = producers[-1 - min(len(producers) - 1, int(rng.geometric(0.2)) - 1)]
        assert other.signal is not None
        index, update, _, value = other.signal
        kind = Wait.EQ if update == Update.SET and rng.random() < 0.7 else Wait.GE
        node.fields |= {f"wait{n}": kind, f"wait{n}_semaphore": index, f"wait{n}_value": value}
        node.after.append(other)


def random_program(rng: np.random.Generator, cfg: Config, length: int) -> Program:
    """`length` instructions over all queues, and the descriptors that they trigger."""
    queues: list[list[Node]] = [[] for _ in Queue]
    rings: list[list[Node]] = [[] for _ in range(cfg.dma.rings)]
    own: dict[int, list[Node]] = {q: [] for q in COPY_QUEUES}
    nodes: list[Node] = []
    producers: list[Node] = []
    counts: dict[int, int] = {}
    next_set = _FIRST_SET
    decks: list[list[int]] = [[] for _ in Queue]  # every opcode of a queue comes, then again
    loaded = 0
    weights = WeightKinds(cfg.tensor.rows, cfg.tensor.cols, cfg.tensor.groups)

    def signal(node: Node, counter: int) -> None:
        nonlocal next_set
        if rng.random() < 0.3:
            return
        if rng.random() < 0.4 and next_set < cfg.issue.semaphores:
            value = int(rng.integers(1, 1 << 31))
            node.signal = next_set, int(Update.SET), value, value
            counts[next_set] = value
            next_set += 1
        else:
            value = int(rng.integers(1, 4))
            counts[counter] = counts.get(counter, 0) + value
            node.signal = counter, int(Update.ADD), value, counts[counter]
        producers.append(node)

    def moves(moved: Node, ring: list[Node], counter: int) -> None:
        """A descriptor, with its signal, for a ring."""
        signal(moved, counter)
        if moved.signal is not None:
            moved.fields["signal_address"] = address(Space.SEMAPHORES, moved.signal[0] * 4)
            moved.fields |= dict(zip(("signal_update", "signal_value"), moved.signal[1:3], strict=True))
        ring.append(moved)
        nodes.append(moved)

    for _ in range(length):
        queue = int(rng.integers(len(Queue)))
        if not decks[queue]:
            decks[queue] = [int(o) for o in rng.permutation([0, 1, *[3] * (queue in COPY_QUEUES), *opcodes_of(queue)])]
        fields = legal(rng, cfg, queue, decks[queue].pop(), loaded, weights)
        weights.issue(fields)
        if fields["opcode"] == Opcode.LOAD_TABLE:
            loaded = fields["imm0"]
        node = Node(queue, len(queues[queue]), fields)
        _wait(rng, node, producers)
        signal(node, queue)
        if node.signal is not None:
            fields |= dict(zip(("update_semaphore", "update", "update_value"), node.signal[:3], strict=True))
        queues[queue].append(node)
        nodes.append(node)
        if fields["opcode"] == Opcode.DMA_TRIGGER:
            ring = fields["imm0"]
            for _ in range(fields["imm1"]):
                few = {"row_bytes": 64, "count0": 1, "count1": 1, "count2": 1, "source": int(rng.integers(1 << 40))}
                moves(Node(ring, len(rings[ring]), few, True, [node]), rings[ring], 8 + ring)
        if fields["opcode"] == Opcode.DMA_COPY:
            any_bits = int.from_bytes(rng.bytes(DESCRIPTOR.offset("signal_address") // 8), "little")
            moved = Node(queue, len(own[queue]), DESCRIPTOR.unpack(any_bits), True, [node])
            moves(moved, own[queue], _OWN + COPY_QUEUES.index(queue))
            fields |= copied(DESCRIPTOR.pack(moved.fields))
    return Program(nodes, queues, rings, counts, own)
