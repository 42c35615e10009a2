"""Amaranth's netlists in a third of the time; the text that comes out is the same, or lacks the names of fields.

Of an adder, a shifter, a comparison every output bit depends on all inputs. Amaranth's search for combinational loops
follows the inputs of each bit of each of them anew; here such a cell is one node. And Amaranth looks at the type of
each net in each value that it makes, millions of them in a large switch; here it does not. It notes twice for every
net which bit of which signal it is, 400 bytes in all, to say so if something is wrong; here that is worked out then.
For each field of each signal of a structure it writes a wire that only a wave viewer reads: 25,000 in a tile of 64 PEs,
and Verilator makes room for them in each of 256 tiles.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

from rtl.base.amaranth_internals import (
    AsyncReadPort,
    Matches,
    Net,
    NetValue,
    Operator,
    PartCell,
    original,
    replaced,
)

__all__ = ["quick_netlists"]

_BY_BIT = ("~", "&", "|", "^", "m")


def _is_one_node(cell: Any) -> bool:
    """Do all bits of the cell's output depend on the same inputs?"""
    if isinstance(cell, Operator):
        return cell.operator not in _BY_BIT
    return isinstance(cell, PartCell | Matches | AsyncReadPort)


def _has_loop(netlist: Any) -> bool:
    cells, connections = netlist.cells, netlist.connections
    one_node = [_is_one_node(cell) for cell in cells]

    def node(net: int) -> int:
        """A net, or the first net of its cell."""
        return net & ~0xFFFF if net >= 2 and one_node[net >> 16] else net

    def behind(net: int) -> Iterator[int]:
        """Nodes that a node depends on."""
        if net < 0:
            yield node(connections[net])
        elif net >= 2:
            for source, _ in cells[net >> 16].comb_edges_to(net & 0xFFFF):
                yield node(source)

    outputs = (net for cell, what in enumerate(cells) for net in what.output_nets(cell))
    signals = (net for value in netlist.signals.values() for net in value)
    done: set[int] = {0, 1}  # constants
    busy: set[int] = set()
    for begin in map(node, chain(outputs, signals)):
        if begin in done:
            continue
        path = [(begin, behind(begin))]
        busy.add(begin)
        while path:
            net, rest = path[-1]
            for source in rest:
                if source in busy:
                    return True
                if source not in done:
                    busy.add(source)
                    path.append((source, behind(source)))
                    break
            else:
                path.pop()
                busy.discard(net)
                done.add(net)
    return False


def _check(netlist: Any) -> None:
    """If there is a loop, Amaranth finds it again and says where it is."""
    if _has_loop(netlist):
        original("Netlist.check_comb_cycles")(netlist)
        raise AssertionError("a combinational loop that Amaranth does not find")


def _value(cls: Any, nets: Any = ()) -> Any:
    """Value.__new__ without a look at each net."""
    return tuple.__new__(cls, (nets,) if isinstance(nets, Net) else nets)


class _BitsOfSignals(dict[int, tuple[Any, int]]):
    """Signal and bit of each net, told for the lowest net of each signal only. A search for any other: for errors."""

    def __missing__(self, net: int) -> tuple[Any, int]:
        first = max(known for known in self if known <= net)
        return self[first][0], net - first


def _alloc_late_value(netlist: Any, signal: Any) -> Any:
    """Netlist.alloc_late_value with one note a signal."""
    if not netlist.late_to_signal:
        netlist.late_to_signal = _BitsOfSignals()
    end = netlist.last_late_net
    netlist.last_late_net = first = end - len(signal)
    if first < end:
        netlist.late_to_signal[first] = signal, 0
    return NetValue(map(Net.from_late, range(first, end)))


def _emit_signal(emitter: Any, signal: Any) -> Any:
    """NetlistEmitter.emit_signal without notes of its own."""
    netlist = emitter.netlist
    if signal in netlist.signals:
        return netlist.signals[signal]
    netlist.signals[signal] = value = netlist.alloc_late_value(signal)
    emitter.late_net_to_signal = netlist.late_to_signal
    return value


@contextmanager
def quick_netlists(*, fields: bool = True) -> Iterator[None]:
    """Conversions in the body go this way; `fields`: with a wire for each field of a structure, for waves."""
    functions: dict[str, Callable[..., Any]] = {
        "Netlist.check_comb_cycles": _check,
        "Value.__new__": _value,
        "Netlist.alloc_late_value": _alloc_late_value,
        "NetlistEmitter.emit_signal": _emit_signal,
    }
    if not fields:
        functions["ModuleEmitter.emit_signal_fields"] = lambda self: None
    with replaced(functions):
        yield
