"""Packets to units of flits and back: the sender's queues and scheduler, the receiver's pool (docs/framing.md)."""
