"""Registers of a switch: routes, partitions, and what each port counts. All are 64 bits wide, at multiples of 8."""

from enum import IntEnum

__all__ = [
    "ADDRESS_BITS",
    "ResponderRegister",
    "SwitchCause",
    "SwitchRegister",
    "SwitchSpace",
    "port_address",
    "route_address",
]

ADDRESS_BITS = 16


class SwitchSpace(IntEnum):
    """Where things begin."""

    ROUTE = 0x0000  # + 8 * endpoint: bits 6:0 port, bit 15 there is a route; without one 0 is read
    PORT = 0x8000  # + 0x100 * port + SwitchRegister
    RESPONDER = 0xFF00  # + ResponderRegister


class SwitchRegister(IntEnum):
    """Registers of a port; all but PARTITION and CONTROL can only be read."""

    STATE = 0x00  # bits 3:0 LinkState, bit 8 alive: the session has been UP and has not ended
    SESSION = 0x08  # bits 15:0 own, 31:16 the partner's as last seen
    PARTITION = 0x10  # bits 3:0; units between ports of different partitions are refused
    CONTROL = 0x18  # bit 0 the port is taken out
    IN_FLIGHT = 0x20  # payload flits not acknowledged
    FIRST_ADDRESS = 0x28  # address of the first packet refused
    FIRST_SOURCE = 0x30  # bits 11:0 its source endpoint, bits 27:16 its destination endpoint, bit 63 there was one
    LINK_CAUSE = 0x40  # + 8 * LinkCause
    CAUSE = 0xC0  # + 8 * SwitchCause


class SwitchCause(IntEnum):
    """What a port of a switch counts beside what its link counts; each stops at 2^32 - 1."""

    HOLE = 0  # units refused: no route for their endpoint
    PARTITION = 1  # units refused: their output is in another partition
    DEAD = 2  # units refused: their output has no session
    DROPPED = 3  # flits of refused units that held no read
    ANSWERED = 4  # units refused that held a read: the responder answers
    LATE = 5  # flits dropped at this output: its session ended while they were on their way
    PARITY = 6  # flits of this output with a byte that changed inside the switch
    BAD_FLITS = 7  # flits dropped at this input because they were no whole unit, as when its session ended


class ResponderRegister(IntEnum):
    """What the responder counts; each stops at 2^32 - 1. All can only be read."""

    ANSWERED = 0x00  # reads that got an error response
    UNSENT = 0x08  # flits of error responses that were dropped: no route to who asked, or its output is dead
    PARITY = 0x10  # flits with a byte that changed inside the switch; nothing in their units is answered


def route_address(endpoint: int) -> int:
    """Address of an endpoint's route."""
    return SwitchSpace.ROUTE + 8 * endpoint


def port_address(port: int, register: SwitchRegister) -> int:
    """Address of a port's register."""
    return SwitchSpace.PORT + 0x100 * port + register
