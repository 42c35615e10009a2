"""What of a unit is its own: not the units inside it that have a bench, and mutants, of their own.

Files first: those that the unit's component imports, less those that an inner unit's component imports. Then cells: an
instance is the unit's own if any of its cells comes from one of these files, with all that helpers of other files
add to it.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

from sim.build.sources import sources_of
from sim.build.tops import top

__all__ = ["own_cells", "own_files"]

_CELL = re.compile(r"^((?:  attribute .*\n)*)  cell \S+ (\S+)$", re.M)
_SOURCE = re.compile(r'\\src "([^"]*)"')
_INSTANCE = re.compile(r"(?:\$flatten)?(\\.*\.)")
_FRAMES = frozenset({"rtl/base/placed.py"})
"""They pass on the ports of what is inside them: their lines are in its cells."""


def _modules(names: Iterable[str]) -> dict[str, tuple[str, frozenset[str]]]:
    """By unit: the file of its component, and the files of RTL that it imports, with its own."""
    found = {}
    for name in names:
        module = top(name).factory.partition(":")[0]
        files = frozenset(file for file in sources_of([module]).files if file.startswith("rtl/"))
        found[name] = module.replace(".", "/") + ".py", files
    return found


def own_files(
    names: Collection[str], wraps: Mapping[str, Collection[str]] = MappingProxyType({})
) -> Mapping[str, frozenset[str]]:
    """By unit: the files whose cells are mutated with it. `wraps`: files that stand for a unit too, where it is inside
    others without what its top adds for its bench."""
    known = _modules(names)
    own = {}
    for name, (file, files) in known.items():
        inner = [
            theirs
            for unit, (at, theirs) in known.items()
            if files & {at, *wraps.get(unit, ())} and at != file and file not in theirs
        ]
        own[name] = files.difference(_FRAMES, *inner)
    return own


def own_cells(netlist: str, files: Collection[str]) -> list[str]:
    """Names of the cells of a flat netlist in RTLIL that belong to instances with a line of one of these files.

    None, which means all, if that is every cell or no cell: a unit that only joins others.
    """
    cells: dict[str, list[str]] = defaultdict(list)
    ours: set[str] = set()
    for attributes, name in _CELL.findall(netlist):
        source = _SOURCE.search(attributes)
        lines = source[1].split("|") if source else []
        place = _INSTANCE.match(name)
        instance = place[1] if place else ""
        cells[instance].append(name)
        if any(line.rpartition(":")[0] in files for line in lines):
            ours.add(instance)
    if ours >= cells.keys():
        return []
    return [name for instance in cells.keys() & ours for name in cells[instance]]
