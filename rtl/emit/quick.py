"""Amaranth's netlists in a third of the time; the text that comes out is the same, or lacks the names of fields.

Amaranth's search for combinational loops follows every bit of every cell. Here cells are put in an order in which each
has its inputs before it; bits are followed only among cells that have no place in it. There a cell is one node if all
its output bits depend on all inputs, as of an adder. And Amaranth looks at the type of
each net in each value that it makes, millions of them in a large switch; here it does not. It notes twice for every
net which bit of which signal it is, 400 bytes in all, to say so if something is wrong; here that is worked out then.
Looking up late nets, joining them to names of wires and following them through the hierarchy is plain loops over
integers here: Amaranth builds a value, a set or a property's answer a net.
For each field of each signal of a structure it writes a wire that only a wave viewer reads: 25,000 in a tile of 64 PEs,
and Verilator makes room for them in each of 256 tiles.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

from rtl.base.amaranth_internals import (
    AsyncReadPort,
    FlipFlop,
    InstanceCell,
    Matches,
    ModuleNetFlow,
    Net,
    NetValue,
    Operator,
    PartCell,
    SyncReadPort,
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


def _behind(cell: Any) -> Iterable[int]:
    """Nets that some output of the cell follows at once, and perhaps more."""
    if isinstance(cell, FlipFlop):
        return (cell.clk, cell.arst)
    return () if isinstance(cell, InstanceCell | SyncReadPort) else cell.input_nets()


def _unordered(netlist: Any) -> set[int]:
    """Cells that depend on themselves as a whole, and those behind them. All cells if nets do so without any cell."""
    cells, connections = netlist.cells, netlist.connections
    every = set(range(len(cells)))
    waits = [0] * len(cells)
    users: dict[int, list[int]] = defaultdict(list)
    for index, cell in enumerate(cells):
        sources = set()
        for net in _behind(cell):
            hops = 0
            while net < 0:
                net, hops = connections[net], hops + 1
                if hops > len(connections):
                    return every
            sources.add(net >> 16)
        sources.discard(0)  # the top's inputs and constants
        waits[index] = len(sources)
        for source in sources:
            users[source].append(index)
    for value in netlist.signals.values():  # of which some may be nobody's input
        for net in value:
            hops = 0
            while net < 0:
                net, hops = connections[net], hops + 1
                if hops > len(connections):
                    return every
    ready = [index for index, count in enumerate(waits) if not count]
    for index in ready:
        for user in users[index]:
            waits[user] -= 1
            if not waits[user]:
                ready.append(user)
    return every.difference(ready)


def _has_loop(netlist: Any) -> bool:
    cells, connections = netlist.cells, netlist.connections
    left = _unordered(netlist)
    if not left:
        return False
    one_node = [_is_one_node(cell) for cell in cells]

    def node(net: int) -> int:
        """A net, or the first net of its cell; 0 for what cannot be in a loop."""
        while net < 0 and len(left) < len(cells):
            net = connections[net]
        if net >= 2 and net >> 16 not in left:
            return 0
        return net & ~0xFFFF if net >= 2 and one_node[net >> 16] else net

    def behind(net: int) -> Iterator[int]:
        """Nodes that a node depends on."""
        if net < 0:
            yield node(connections[net])
        elif net >= 2:
            for source, _ in cells[net >> 16].comb_edges_to(net & 0xFFFF):
                yield node(source)

    outputs = (net for cell in left for net in cells[cell].output_nets(cell))
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


def _from_cell(cell: int, bit: int) -> Any:
    """Net.from_cell; a bit that does not fit into 16 is still an error."""
    if bit >> 16:
        raise AssertionError(f"bit {bit} of cell {cell}: a net has 16 bits for it")
    return Net((cell << 16) | bit)


def _resolve_value(netlist: Any, value: Any) -> Any:
    """Netlist.resolve_value in one loop."""
    connections, nets = netlist.connections, []
    for net in value:
        while net < 0:
            net = connections[net]
        nets.append(net)
    return tuple.__new__(NetValue, nets)


def _sigspec(emitter: Any, *parts: Any) -> str:
    """ModuleEmitter.sigspec; all nets are resolved: below 2 they are constants."""
    places, chunks, at = emitter.nets, [], 0
    nets = list(chain.from_iterable((part,) if isinstance(part, Net) else part for part in parts))
    while at < len(nets):
        begin = at
        if nets[at] < 2:
            while at < len(nets) and nets[at] < 2:
                at += 1
            chunks.append(f"{at - begin}'{''.join(str(int(net)) for net in reversed(nets[begin:at]))}")
            continue
        wire, first = places[nets[at]]
        last = first
        at += 1
        while at < len(nets) and nets[at] >= 2 and places[nets[at]] == (wire, last + 1):
            at, last = at + 1, last + 1
        chunks.append(f"{wire.name} [{first}]" if last == first else f"{wire.name} [{last}:{first}]")
    return chunks[0] if len(chunks) == 1 else "{ " + " ".join(reversed(chunks)) + " }"


def _net_flows(netlist: Any) -> None:
    """_compute_net_flows: Amaranth's walk from a use and from the definition up to where they meet."""
    modules, meets = netlist.modules, {}
    depths, parents = [len(module.name) for module in modules], [module.parent for module in modules]
    flows = [module.net_flow for module in modules]
    internal, inwards, outwards = ModuleNetFlow.Internal, ModuleNetFlow.Input, ModuleNetFlow.Output
    for index, cell in enumerate(netlist.cells):
        for net in cell.output_nets(index):
            meets[net] = cell.module_idx
            flows[cell.module_idx][net] = internal

    def use(net: Any, at: int) -> None:
        made = meets[net]
        while depths[made] > depths[at]:
            flows[made][net] = outwards
            made = parents[made]
        while depths[made] < depths[at]:
            if net in flows[at]:
                return
            flows[at][net] = inwards
            at = parents[at]
        while made != at:
            flows[made][net], flows[at][net] = outwards, inwards
            made, at = parents[made], parents[at]
        flows[made][net] = internal
        meets[net] = made

    for cell in netlist.cells:
        known = flows[cell.module_idx]
        for net in cell.input_nets():
            if net not in known and net >= 2:
                use(net, cell.module_idx)
    for index, module in enumerate(modules):
        for signal in module.signal_names:
            for net in netlist.signals[signal]:
                if net not in flows[index] and net >= 2:
                    use(net, index)


@contextmanager
def quick_netlists(*, fields: bool = True) -> Iterator[None]:
    """Conversions in the body go this way; `fields`: with a wire for each field of a structure, for waves."""
    functions: dict[str, Callable[..., Any]] = {
        "Netlist.check_comb_cycles": _check,
        "Value.__new__": _value,
        "Netlist.alloc_late_value": _alloc_late_value,
        "NetlistEmitter.emit_signal": _emit_signal,
        "Net.from_cell": _from_cell,
        "Netlist.resolve_value": _resolve_value,
        "ModuleEmitter.sigspec": _sigspec,
        "_compute_net_flows": _net_flows,
    }
    if not fields:
        functions["ModuleEmitter.emit_signal_fields"] = lambda self: None
    with replaced(functions):
        yield
