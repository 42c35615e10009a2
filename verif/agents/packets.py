"""Packets at a link's streams: a source that sends them beat by beat, a sink that puts them together."""

from collections.abc import Callable, Iterator

from rtl.base.packet import PACKET_BEAT
from verif.agents.bench import Bench
from verif.agents.opened import opened
from verif.agents.stall import never
from verif.agents.stream import StreamSink, StreamSource
from verif.golden.endpoint import Packet, from_beats

__all__ = ["PacketSink", "PacketSource"]

_BEAT = opened(PACKET_BEAT)


class PacketSource:
    """Sends packets of a class to the stream `name`, to `endpoint` unless they say otherwise."""

    def __init__(self, bench: Bench, name: str, stall: Iterator[bool] | None = None, *, endpoint: int = 0):
        self.endpoint = endpoint
        self.stream = StreamSource(bench, name, stall)

    def send(self, class_: int, packet: Packet, *, cut: int = 0, endpoint: int | None = None) -> None:
        """Queue a packet; `cut` beats are left out at its end."""
        to = self.endpoint if endpoint is None else endpoint
        beats = packet.beats()
        beats = beats[: len(beats) - cut]
        self.stream.send(
            PACKET_BEAT.const(
                {"first": n == 0, "last": n == len(beats) - 1, "class_": class_, "endpoint": to, "data": beat}
            ).as_bits()
            for n, beat in enumerate(beats)
        )


class PacketSink:
    """Takes the stream `name`; `on_packet` hears (class, endpoint, packet)."""

    def __init__(
        self,
        bench: Bench,
        name: str,
        on_packet: Callable[[int, int, Packet], None],
        stall: Iterator[bool] | None = None,
    ):
        self.on_packet = on_packet
        self.beats: list[int] = []
        self.stream = StreamSink(bench, name, stall if stall is not None else never())
        self.stream.on_taken = self._taken

    def _taken(self, bits: int) -> None:
        beat = _BEAT(bits)
        assert bool(beat.first) == (not self.beats), "first marks the first beat of a packet"
        self.beats.append(int(beat.data))
        if int(beat.last):
            packet = from_beats(self.beats)
            self.beats = []
            self.on_packet(int(beat.class_), int(beat.endpoint), packet)
