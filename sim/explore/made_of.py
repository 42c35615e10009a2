"""What a row was made of: rows of other sources or tools do not count."""

import hashlib
import json

from sim.build.sources import sources_of
from sim.toolchain import tool_versions

__all__ = ["made_of"]


def made_of() -> str:
    """A digest of all sources that a row depends on, and of the tools."""
    what = [sources_of(["sim.explore.worker", "verif.golden.machine"], ()).digest, tool_versions()]
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:16]
