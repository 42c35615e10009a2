"""The endpoint number of a core as gates (rtl/contract/endpoint_map.py): some low bits of each part of its place."""

from collections.abc import Iterator
from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Mux, Value

from rtl.base.fault import fault
from rtl.contract.config import Config
from rtl.contract.endpoint_map import PLACE
from rtl.contract.link import ENDPOINT_BITS
from rtl.contract.memmap import ADDRESS, CoreId

__all__ = ["endpoint_number", "has_endpoint"]


def _parts(cfg: Config, core: Value) -> Iterator[tuple[Value, Value]]:
    """Of rack, server, chip and core: bits in the number, and those above, which it has not."""
    widths = {field.name: field.width for field in ADDRESS}
    for name, bits in zip(PLACE, cfg.fabric.endpoint_bits, strict=True):
        at = ADDRESS.offset(name) - CoreId.LSB
        yield core[at : at + bits], core[at + bits : at + widths[name]]


def endpoint_number(cfg: Config, core: Value) -> Value:
    """ENDPOINT_BITS of a core id (CoreId.BITS)."""
    number = Cat(*(kept for kept, _ in reversed(list(_parts(cfg, core)))))
    whole = Cat(number, Const(0, ENDPOINT_BITS - len(number)))
    return Mux(fault("an endpoint number is the low bits of a place whatever the map"), core[:ENDPOINT_BITS], whole)


def has_endpoint(cfg: Config, core: Value) -> Value:
    """Whether the core at this place has an endpoint number: no part of its place is wider than the map."""
    above = reduce(or_, (rest.any() for _, rest in _parts(cfg, core)))
    return ~above | fault("a place that has no endpoint number is taken for one that has")
