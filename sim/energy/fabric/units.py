"""What switches for a beat of a flit: the codec at both ends, the lanes of a port, the crossbar of a switch."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from rtl.contract.link import CRC_AT, DLP_AT, FEC_AT, FLIT_BYTES
from rtl.contract.link_config import LinkConfig
from rtl.contract.switch_config import SwitchConfig
from rtl.switch.beat import transfer_beat
from sim.energy.anchor_events import anchor_units
from sim.energy.events import CYCLES, Event, Unit
from sim.energy.simulation import Simulation
from sim.energy.values import Source, constant

__all__ = ["units_of_link", "units_of_switch"]

Words = NDArray[np.uint64]
_HEAD_BITS = 32  # header of a flit
_WARM_BEATS = 4  # a flit, at least


def _beat(source: Source, link: LinkConfig, n: int, *, payload: bool, until: int) -> Words:
    """Data of beat `n` of flits that follow each other: numbers of tensors as payload, in a NOP zeros; its DLP is new
    in each flit, what comes from byte `until` on is 0."""
    bits = 8 * link.beat_bytes
    at = n % link.beats * link.beat_bytes  # of its flit
    data = source.word("bf16", bits) if payload else np.zeros((bits, source.words), np.uint64)
    if at == 0:
        data[:_HEAD_BITS] = source.below(1 << _HEAD_BITS, _HEAD_BITS) if payload else 0
    if at + link.beat_bytes == FLIT_BYTES:
        own = 8 * (DLP_AT - at)
        data[own:] = np.concatenate([source.below(1 << 16, 16) for _ in range(-(-(bits - own) // 16))])[: bits - own]
        data[8 * (until - at) :] = 0
    return data


def _ends(link: LinkConfig, n: int) -> tuple[Words, Words]:
    """Flags of beat `n`: first and last of a flit."""
    return constant(int(n % link.beats == 0), 1), constant(int(n % link.beats == link.beats - 1), 1)


def _cycles(sims: list[Simulation], inputs: Callable[[int], dict[str, Words]], warm: int = _WARM_BEATS) -> None:
    """`warm` beats, and then those that count."""
    for n in range(warm + CYCLES):
        sims[0].cycle(inputs(n))
        if n == warm - 1:
            sims[0].toggles.clear()


def _encode(sims: list[Simulation], source: Source, *, link: LinkConfig, payload: bool) -> None:
    sims[0].cycle({"rst": constant(1, 1), "o__ready": constant(1, 1)})

    def inputs(n: int) -> dict[str, Words]:
        first, last = _ends(link, n)
        data = _beat(source, link, n, payload=payload, until=CRC_AT)
        beat = {"i__payload": np.concatenate([np.broadcast_to(x, (1, source.words)) for x in (first, last)] + [data])}
        return {"rst": constant(0, 1), "i__valid": constant(1, 1), **beat}

    _cycles(sims, inputs)


def _sum(sims: list[Simulation], source: Source, *, link: LinkConfig, payload: bool) -> None:
    """Of a checker's network, CRC or FEC."""
    sims[0].cycle({"rst": constant(1, 1)})

    def inputs(n: int) -> dict[str, Words]:
        data = _beat(source, link, n, payload=payload, until=FEC_AT)
        return {"rst": constant(0, 1), "enable": constant(1, 1), "first": _ends(link, n)[0], "data": data}

    _cycles(sims, inputs)


def _lanes(sims: list[Simulation], source: Source, *, link: LinkConfig) -> None:
    """The lanes take a beat when they are ready, which no data change; a marker goes before the first."""
    still = {"align": constant(0, 1), "mask": constant(0, link.lanes + link.spare_lanes), "here": constant(1, 1)}
    sims[0].cycle({"rst": constant(1, 1), **still})
    sent = 0

    def inputs(n: int) -> dict[str, Words]:
        nonlocal sent
        del n  # a narrow link takes a beat in some of its cycles
        first, last = _ends(link, sent)
        data = _beat(source, link, sent, payload=True, until=FLIT_BYTES)
        beat = np.concatenate([np.broadcast_to(x, (1, source.words)) for x in (first, last)] + [data])
        sent += int(sims[0].output("i__ready")[0, 0] & np.uint64(1))
        return {"rst": constant(0, 1), "i__valid": constant(1, 1), "i__payload": beat}

    _cycles(sims, inputs, warm=4 * link.beat_cycles * _WARM_BEATS)


def _cross(sims: list[Simulation], source: Source, *, cfg: SwitchConfig) -> None:
    """Every output listens to another input, a beat a cycle: the toggles are those of all."""
    size = transfer_beat(cfg.link).size
    width = (cfg.inputs - 1).bit_length()
    ways = np.concatenate([constant((k + 1) % cfg.inputs, width) for k in range(cfg.outputs)])
    sims[0].cycle({"rst": constant(1, 1), "mute": constant(0, cfg.outputs)})
    every = {"tune": constant((1 << cfg.outputs) - 1, cfg.outputs), "source": ways}
    sims[0].cycle({"rst": constant(0, 1), **every})

    def inputs(n: int) -> dict[str, Words]:
        del n
        beats = [source.word("bf16", -(-size // 64) * 64)[:size] for _ in range(cfg.inputs)]
        busy = constant((1 << cfg.inputs) - 1, cfg.inputs)
        return {"tune": constant(0, cfg.outputs), "i_valid": busy, "i": np.concatenate(beats)}

    _cycles(sims, inputs)


def _codec(link: LinkConfig) -> Sequence[Unit]:
    def events(name: str, drive: Callable[..., None]) -> tuple[Event, ...]:
        return tuple(
            Event(f"{name} {what}", "beat", partial(drive, link=link, payload=what == "payload"))
            for what in ("payload", "nop")
        )

    cfg = {"cfg": link}
    return (
        Unit(
            name="encoder",
            factory="rtl.link.codec.encoder:Encoder",
            options=cfg | {"form": "structural"},
            events=events("encode", _encode),
        ),
        Unit(
            name="crc check",
            factory="rtl.link.codec.crc:Crc",
            options=cfg | {"check": True},
            events=events("crc check", _sum),
        ),
        Unit(name="fec check", factory="rtl.link.codec.fec:Fec", options=cfg, events=events("fec check", _sum)),
    )


def units_of_link(link: LinkConfig) -> tuple[Unit, ...]:
    """Of a port with lanes."""
    lanes = Unit(
        name="lane sender",
        factory="rtl.link.lanes.lane_sender:LaneSender",
        options={"cfg": link},
        events=(Event("lanes", "cycle", partial(_lanes, link=link)),),
    )
    return (*anchor_units(), *_codec(link), lanes)


def units_of_switch(cfg: SwitchConfig) -> tuple[Unit, ...]:
    """Of a switch, whose ports have no lanes."""
    crossbar = Unit(
        name="crossbar",
        factory="rtl.switch.crossbar:Crossbar",
        options={"cfg": cfg},
        events=(Event("crossbar", "cycle of all outputs", partial(_cross, cfg=cfg)),),
    )
    return (*anchor_units(), *_codec(cfg.link), crossbar)
