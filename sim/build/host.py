"""For which processor a model that runs long is compiled: this one, or any of its kind with PLEXUS_PORTABLE=1."""

import hashlib
import os
from dataclasses import dataclass
from functools import cache

from sim.errors import PlexusError
from sim.toolchain import compiler, compiler_says

__all__ = ["PORTABLE", "Host", "this_host"]


@dataclass(frozen=True, slots=True)
class Host:
    """`flags` for the compiler; `name` of the processor as it calls it; `key`: differs wherever code may."""

    name: str
    flags: tuple[str, ...]
    key: str


PORTABLE = Host("any", (), "")


@cache
def _native(cxx: str) -> Host:
    """What -march=native means to the compiler `cxx` here. PORTABLE if it does not know that option."""
    native = "-march=native"
    macros = compiler_says(native, "-dM", "-E", "-x", "c++")
    if not macros:
        return PORTABLE
    chosen = [line.split() for line in compiler_says(native, "-Q", "--help=target", "-x", "c++").splitlines()]
    named = [words[1] for words in chosen if len(words) == 2 and words[0] in ("-march=", "-mcpu=")]
    key = hashlib.sha256("\n".join(sorted(macros.splitlines())).encode()).hexdigest()[:16]
    return Host(named[0] if named else "unnamed", (native, "-ffp-contract=off"), key)


def this_host() -> Host:
    """This processor, or PORTABLE if PLEXUS_PORTABLE=1 asks for it or the compiler knows no other.

    Errors: PlexusError for another value of PLEXUS_PORTABLE.
    """
    asked = os.environ.get("PLEXUS_PORTABLE", "")
    if asked not in ("", "0", "1"):
        raise PlexusError(f"PLEXUS_PORTABLE={asked!r}: it is 1 for models that run on any processor, or 0")
    return PORTABLE if asked == "1" else _native(compiler())
