"""Connects a link to the DMA it belongs to."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, connect, flipped

from rtl.base.placed import Placed
from rtl.dma.fabric.away_signals import AwaySignals
from rtl.dma.fabric.link import LINK_COUNTS, LINK_PORTS, WAYS, Link
from rtl.dma.movers.mover import Mover
from rtl.dma.rings.check import Check
from rtl.dma.rings.complete import Complete
from rtl.dma.rings.rows import RowGenerator
from rtl.dma.sbuf_share import SbufShare
from rtl.dma.sbuf_split import SbufSplit
from rtl.dma.signal_share import SignalShare

__all__ = ["join_link"]


def join_link(
    m: Module,
    dma: wiring.Component,
    link: Link,
    check: Check,
    rows: RowGenerator,
    complete: Complete,
    movers: list[Placed],
) -> tuple[Placed, ...]:
    """The link's share of SBUF, rows and signals, its pins at `dma`, and its movers, two of each bank, which are
    returned with their sides towards HBM still open."""
    both: list[Placed] = []
    for k in range(link.own.dma.link_movers):
        m.submodules[f"split{k}"] = split = SbufSplit(link.own, k)
        connect(m, link.sbuf[k], split.whole)
        for n, e in enumerate(split.groups):
            m.submodules[f"share{e}"] = share = SbufShare(link.own)
            connect(m, movers[e].sbuf, share.mover)
            connect(m, split.group[n], share.link)
            connect(m, share.sbuf, flipped(dma.mover[e]))  # type: ignore[attr-defined]
        for way in WAYS:
            mover = Placed("link_mover", lambda: Mover(link.cfg))
            m.submodules[f"{way}{k}"] = mover
            both.append(mover)
            connect(m, getattr(link, f"{way}_row")[k], mover.row)
            connect(m, mover.sbuf, getattr(link, f"{way}_port")[k])
            connect(m, mover.done, getattr(link, f"{way}_done")[k])
            m.d.comb += [mover.ask[0].ready.eq(0), mover.serve_valid.eq(0)]
    m.submodules.signals = signals = SignalShare()
    m.submodules.away_signals = away = AwaySignals(link.own)
    connect(m, complete.signal, away.rings)
    connect(m, away.o, signals.rings)
    connect(m, away.send, link.away_signal)
    m.d.comb += [
        away.rings_slot.eq(complete.signal_slot),
        away.keep.eq(check.report),
        away.slot.eq(check.slot),
        away.kept.eq(check.away_signal),
        away.sent.eq(link.signalled),
        link.away_busy.eq(away.busy),
    ]
    connect(m, link.signal, signals.link)
    connect(m, signals.o, flipped(dma.signal))  # type: ignore[attr-defined]
    connect(m, rows.remote, link.row)
    m.d.comb += [room.eq(there) for room, there in zip(rows.remote_room, link.room, strict=True)]
    connect(m, link.done, complete.done[len(movers)])
    m.d.comb += [link.clear.eq(dma.clear), link.core_id.eq(dma.core_id)]  # type: ignore[attr-defined]
    with m.If(rows.remote.valid):  # Complete counts pieces
        m.d.comb += [complete.issued.eq(link.issued), complete.last.eq(link.last)]
    for name, member in (LINK_PORTS | LINK_COUNTS).items():
        port, own = getattr(link, name), getattr(dma, name)
        if not member.is_signature:
            m.d.comb += port.eq(own) if member.flow == In else own.eq(port)
        elif member.flow == In:
            connect(m, flipped(own), port)
        else:
            connect(m, port, flipped(own))
    return tuple(both)
