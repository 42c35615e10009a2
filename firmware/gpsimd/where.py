"""Which line of which source an address comes from, by the image's DWARF."""

from bisect import bisect_right
from functools import lru_cache
from pathlib import Path
from typing import Any

from elftools.common.exceptions import DWARFError, ELFError
from elftools.construct import ConstructError
from elftools.elf.elffile import ELFFile

from rtl.contract.gpsimd import Region

__all__ = ["where"]


@lru_cache(maxsize=8)
def _rows(path: Path, changed_ns: int) -> tuple[list[int], list[str]]:
    """Addresses at which a line begins, ascending, and that line; empty text behind a sequence's end."""
    found: dict[int, str] = {}
    with path.open("rb") as stream:
        elf = ELFFile(stream)
        if elf.has_dwarf_info():
            dwarf: Any = elf.get_dwarf_info()
            for unit in dwarf.iter_CUs():
                program = dwarf.line_program_for_CU(unit)
                if program is None:
                    continue
                first = 0 if program["version"] >= 5 else 1
                for entry in program.get_entries():
                    if (state := entry.state) is None or state.address < Region.LOCAL:
                        continue  # of functions that the linker has dropped
                    name = program["file_entry"][state.file - first].name.decode(errors="replace")
                    if state.end_sequence:
                        found.setdefault(state.address, "")
                    else:
                        found[state.address] = f"{Path(name).name}:{state.line}"
    return sorted(found), [found[at] for at in sorted(found)]


def where(path: Path, pc: int) -> str | None:
    """`topk.cpp:41` for the instruction at `pc`; None if the image does not tell."""
    try:
        addresses, lines = _rows(path, path.stat().st_mtime_ns)
    except (OSError, ELFError, DWARFError, ConstructError, IndexError, KeyError, ValueError):
        return None
    at = bisect_right(addresses, pc) - 1
    return (lines[at] or None) if at >= 0 else None
