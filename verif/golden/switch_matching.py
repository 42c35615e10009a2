"""Matchings of a switch: random orders, wavefront, merging of two matchings, iSLIP (docs/switch-scheduler.md).

Inputs and outputs are numbers; a set of pairs is a list of sets of outputs, by input; a matching is a dict
input -> output. Everything is greedy or a search, nothing is a vector.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

__all__ = ["Islip", "Orders", "components", "merged", "wavefront"]

Matching = dict[int, int]
WORD = (1 << 64) - 1


class Orders:
    """The random order of the inputs, another one in each slot.

    64 random bits (xorshift 13, 7, 17) exchange neighbours at distances of powers of 2; then all are turned by a
    number that grows by 1 to 8 a slot.
    """

    def __init__(self, count: int, seed: int = 0x9E3779B97F4A7C15):
        self.count = count
        self.bits = seed
        self.turn = 0

    def step(self) -> list[int]:
        """The order of this slot, place by input; draws the next one."""
        n, x = self.count, self.bits
        at = list(range(n))  # who is at a place
        used = 0
        distance = 1
        while distance < n:
            for low in range(n - distance):
                if not low & distance:
                    if x >> (used * 5 + used // 64) % 64 & 1:
                        at[low], at[low + distance] = at[low + distance], at[low]
                    used += 1
            distance *= 2
        place = [0] * n
        for j, i in enumerate(at):
            place[i] = (j + self.turn) % n
        self.turn = (self.turn + 1 + (x >> 61)) % n
        x ^= x << 13 & WORD
        x ^= x >> 7
        x ^= x << 17 & WORD
        self.bits = x
        return place


def wavefront(asks: Sequence[int], rows: set[int], columns: set[int], place: Sequence[int]) -> Matching:
    """A maximal matching of what is asked (bits of outputs, by input) between free rows and columns.

    Pairs are taken in the order of their diagonals: (output - place of the input) mod count.
    """
    n = len(place)
    free = sum(1 << o for o in columns)
    found: Matching = {}
    open_rows = [i for i in rows if asks[i] & free]
    for diagonal in range(n):
        if not open_rows:
            break
        left = []
        for i in open_rows:
            o = (place[i] + diagonal) % n
            if asks[i] & free & 1 << o:
                found[i] = o
                free ^= 1 << o
            else:
                left.append(i)
        open_rows = left
    return found


def components(one: Mapping[int, int], other: Mapping[int, int]) -> Iterable[tuple[list[int], list[int]]]:
    """Connected parts of two matchings: inputs with a pair of `one`, inputs with a pair of `other`."""
    owner = {o: i for i, o in one.items()}
    owner_other = {o: i for i, o in other.items()}
    unseen = set(one) | set(other)
    while unseen:
        part, front = set[int](), {unseen.pop()}
        while front:
            i = front.pop()
            part.add(i)
            for o in {m[i] for m in (one, other) if i in m}:
                front |= {p[o] for p in (owner, owner_other) if o in p} - part
        unseen -= part
        yield [i for i in part if i in one], [i for i in part if i in other]


def merged(old: Matching, new: Matching, weight: Callable[[int, int], int]) -> tuple[Matching, set[int]]:
    """The heavier of two matchings in each component, the old one if they weigh the same; inputs that kept theirs."""
    result: Matching = {}
    kept = set[int]()
    for olds, news in components(old, new):
        if sum(weight(i, old[i]) for i in olds) >= sum(weight(i, new[i]) for i in news):
            result |= {i: old[i] for i in olds}
            kept |= set(olds)
        else:
            result |= {i: new[i] for i in news}
    return result, kept


class Islip:
    """Rounds of request, grant and accept with a pointer each; pointers move only for what the first round accepts."""

    def __init__(self, count: int, rounds: int):
        self.count = count
        self.rounds = rounds
        self.grant = [0] * count
        self.accept = [0] * count

    def match(self, asks: Sequence[int], rows: set[int], columns: set[int]) -> Matching:
        """A matching of what is asked."""
        n = self.count
        found: Matching = {}
        rows, columns = set(rows), set(columns)
        for turn in range(self.rounds):
            offers: dict[int, list[int]] = {}
            for o in columns:
                asking = [i for i in rows if asks[i] >> o & 1]
                if asking:
                    offers.setdefault(min(asking, key=lambda i: (i - self.grant[o]) % n), []).append(o)
            for i, outputs in offers.items():
                o = min(outputs, key=lambda o: (o - self.accept[i]) % n)
                found[i] = o
                rows.discard(i)
                columns.discard(o)
                if turn == 0:
                    self.grant[o] = (i + 1) % n
                    self.accept[i] = (o + 1) % n
        return found
