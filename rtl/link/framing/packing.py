"""Which packets share a unit: rules of a sender, docs/framing.md."""

from amaranth.hdl import Value
from amaranth.utils import ceil_log2

from rtl.contract.link import UNIT_FLITS_MAX
from rtl.contract.link_config import LinkConfig
from rtl.link.framing.framing import FLIT_WORDS, rows_of

__all__ = ["has_time", "keeps_pace", "packet_beats"]


def _flits(words: Value) -> Value:
    """Flits of so many words, at least 1."""
    return 1 + sum((words > n * FLIT_WORDS for n in range(1, UNIT_FLITS_MAX)), start=Value.cast(0))


def packet_beats(cfg: LinkConfig, words: Value) -> Value:
    """Beats that a packet takes at a packet port."""
    lanes = rows_of(cfg).lanes
    return (words + (lanes - 1)) >> ceil_log2(lanes)


def has_time(ahead: Value, words: Value) -> Value:
    """The line will not want the youngest unit of a queue before a packet of `words` is in it.

    `ahead` flits of the queue go first. One of them may be nearly over; and a packet takes no longer to come in than
    its own flits take to leave.
    """
    return ahead > _flits(words)


def keeps_pace(cfg: LinkConfig, words: Value, beats: Value) -> Value:
    """A receiver gives out a unit of `words` with packets of `beats` beats, one a cycle, no slower than it comes.

    Units with more packets would hold up the receiver and then, for want of credits, the sender, where units only grow.
    """
    return beats <= _flits(words) * cfg.flit_cycles
