"""One direction of a link as the protocol models it, at flit granularity: damage, drops, repeats, outages, delay."""

from collections import deque

import numpy as np

from rtl.contract.link import REPEAT_FLITS
from verif.golden.link_partner import SILENCE

__all__ = ["LinkChannel"]


class LinkChannel:
    """A FIFO of `delay` flits. A flit is damaged with probability `damage`, dropped with `drop`; after it, one of the
    last REPEAT_FLITS comes again with `repeat`, which makes the delay longer, or when it is long, in its place. No flit
    overtakes another. `cut`: everything is dropped while True.
    """

    def __init__(self, rng: np.random.Generator, delay: int = 9, damage: float = 0, drop: float = 0, repeat: float = 0):
        self.rng = rng
        self.delay = delay
        self.damage = damage
        self.drop = drop
        self.repeat = repeat
        self.cut = False
        self.queue: deque[bytes | None] = deque()
        self.past: deque[bytes | None] = deque(maxlen=REPEAT_FLITS)

    def pass_on(self, sent: bytes) -> bytes | None:
        """A flit time: take a flit (or SILENCE) and give what arrives: a flit, None for a refused one, SILENCE."""
        if sent and not self.cut and self.rng.random() >= self.drop:
            arrives = None if self.rng.random() < self.damage else sent
            self.queue.append(arrives)
            if self.repeat and self.past and self.rng.random() < self.repeat:
                if len(self.queue) > self.delay + 8:
                    self.queue.pop()
                self.queue.append(self.past[int(self.rng.integers(len(self.past)))])
            else:
                self.past.append(arrives)
        elif sent or self.queue:
            self.queue.append(SILENCE)
        if len(self.queue) <= self.delay:
            return SILENCE
        heard = self.queue.popleft()
        while heard == SILENCE and len(self.queue) > self.delay:  # what repeats have added is made up for
            heard = self.queue.popleft()
        return heard
