"""The lists of C++ files that Verilator leaves in Vtop_classes.mk."""

import re
from collections.abc import Sequence

__all__ = ["names_in"]

_LIST = re.compile(r"^(VM_[A-Z]+_(?:FAST|SLOW)) \+= \\\n((?:  \S+ \\\n)*)", re.M)


def names_in(classes: str, kinds: Sequence[str], speeds: Sequence[str] = ("FAST", "SLOW")) -> list[str]:
    """What the lists of these kinds (CLASSES, SUPPORT, GLOBAL) name in the text of that file, without suffix."""
    lists = {name: text.replace("\\", " ").split() for name, text in _LIST.findall(classes)}
    return [name for kind in kinds for speed in speeds for name in lists[f"VM_{kind}_{speed}"]]
