"""Codes of a flit: CRC and FEC, put in by the encoder, checked and repaired by the decoder (docs/flit-codec.md)."""
