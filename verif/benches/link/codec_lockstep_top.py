"""Both forms of encoder and decoder on the same inputs, compared in hardware on every cycle."""

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.contract.link import CRC_ORDER
from rtl.contract.link_config import LinkConfig
from rtl.link.beat import beat_layout
from rtl.link.codec.decoder import Decoder
from rtl.link.codec.encoder import Encoder

__all__ = ["CodecLockstepTop"]

_OUTPUTS = ("o", "o_good", "o_dlp", "o_groups", "o_fix")


class CodecLockstepTop(wiring.Component):
    """Inputs of an encoder (`e`, and `e_ready`, which is its `o.ready`) and of a decoder (`d`, ...).

    `encoded`, `decoded` count beats that left either form, `mismatches` cycles in which the forms differ in
    valid or ready or, when valid, in anything else. The counters ignore reset; `clear` sets them to 0.
    """

    def __init__(self, cfg: LinkConfig, order: str = CRC_ORDER):
        self.cfg = cfg
        self.order = order
        super().__init__(
            {
                "e": In(stream.Signature(beat_layout(cfg))),
                "e_ready": In(1),
                "d_valid": In(1),
                "d": In(beat_layout(cfg)),
                "d_refuse": In(1),
                "clear": In(1),
                "encoded": Out(32),
                "decoded": Out(32),
                "mismatches": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        encoders, decoders = [], []
        for form in ("structural", "native"):
            m.submodules[f"encoder_{form}"] = encoder = Encoder(self.cfg, form, order=self.order)
            m.submodules[f"decoder_{form}"] = decoder = Decoder(self.cfg, form, order=self.order)
            m.d.comb += [
                encoder.i.valid.eq(self.e.valid),
                encoder.i.payload.eq(self.e.payload),
                encoder.o.ready.eq(self.e_ready),
                decoder.i_valid.eq(self.d_valid),
                decoder.i.eq(self.d),
                decoder.i_refuse.eq(self.d_refuse),
            ]
            encoders.append(encoder)
            decoders.append(decoder)
        m.d.comb += self.e.ready.eq(encoders[0].i.ready)

        compared = {name: Signal(32, reset_less=True, name=name) for name in ("encoded", "decoded", "mismatches")}
        one, other = encoders
        encoder_differs, decoder_differs = Signal(), Signal()
        m.d.comb += encoder_differs.eq(
            (one.o.valid != other.o.valid)
            | (one.i.ready != other.i.ready)
            | (one.o.valid & (Value.cast(one.o.payload) != Value.cast(other.o.payload)))
        )
        first, second = (Cat(Value.cast(getattr(d, name)) for name in _OUTPUTS) for d in decoders)
        d0, d1 = decoders
        m.d.comb += [
            decoder_differs.eq((d0.o_valid != d1.o_valid) | (d0.o_valid & (first != second))),
            *(getattr(self, name).eq(count) for name, count in compared.items()),
        ]
        with m.If(self.clear):
            m.d.sync += [count.eq(0) for count in compared.values()]
        with m.Else():
            m.d.sync += [
                compared["encoded"].eq(compared["encoded"] + ((one.o.valid | other.o.valid) & self.e_ready)),
                compared["decoded"].eq(compared["decoded"] + (d0.o_valid | d1.o_valid)),
                compared["mismatches"].eq(compared["mismatches"] + (encoder_differs | decoder_differs)),
            ]
        return m
