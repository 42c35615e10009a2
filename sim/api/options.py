"""What every call takes beside its arrays, and what it comes to."""

import os
from dataclasses import dataclass
from operator import index
from pathlib import Path
from typing import Any, Literal, SupportsIndex, TypedDict

from firmware.program import Program
from rtl.contract.config import Config
from sim.api.configs import Settings, load_config
from sim.api.session import DEVICES, Session
from sim.errors import PlexusError
from sim.run.checking import need_check

__all__ = ["Options", "Settled", "settled"]


class Options(TypedDict, total=False):
    """Keywords of every call.

    config: a name of `list_configs` ("small"), a .toml file, or a Config; of a finished Program its own.
    settings: changed fields, {"hbm.latency_ns": 50} or ["hbm.latency_ns=50"].
    device: "rtl" (the Verilated core, cycle by cycle; built on first use, which may take minutes) or "golden" (the
        golden machine: the same bits, no cycles, nothing to build).
    check: on the RTL, "golden" compares every bit with the golden machine, "sample=N" N result tiles, "none" nothing.
    seed: of stochastic rounding, from 0 to 2**32 - 1.
    folder: for report.json and, on the RTL, trace.npz, as `plexus report` takes them; nothing is written without.
    session: a Session, whose config, device and check count.
    array: "native", the tensor engine's array as C++ of the same bits and cycles, or "structural", as Verilated RTL.
    fast: a model compiled for speed of long runs: the build takes longer. Both are of the RTL only.
    """

    config: str | os.PathLike[str] | Config
    settings: Settings
    device: Literal["rtl", "golden"]
    check: str
    seed: SupportsIndex
    folder: str | os.PathLike[str]
    session: Session
    array: Literal["native", "structural"]
    fast: bool


ARRAYS = ("native", "structural")
_NAMES = tuple(Options.__annotations__)
_OF_SESSION = ("config", "settings", "device", "check")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """Options that have been checked."""

    cfg: Config
    device: str
    check: str
    seed: int
    folder: Path | None
    session: Session | None
    array: str
    fast: bool


def _seed(seed: Any) -> int:
    """A seed, a whole number of NumPy too. PlexusError for anything else."""
    try:
        found = -1 if isinstance(seed, bool) else index(seed)
    except TypeError:
        found = -1
    if not 0 <= found < 1 << 32:
        raise PlexusError(f"seed must be a whole number from 0 to 2**32 - 1, not {seed!r}")
    return found


def _folder(folder: Any) -> Path | None:
    """PlexusError for what is no path."""
    if folder is None:
        return None
    path = os.fspath(folder) if isinstance(folder, (str, os.PathLike)) else None
    if not isinstance(path, str) or "\0" in path:
        raise PlexusError(f"folder is a path, a text or a pathlib.Path, not {folder!r}")
    return Path(path)


def settled(options: Options, program: Program | None = None) -> Settled:
    """Errors: PlexusError, one sentence, for an option or a value that there is not."""
    if unknown := [name for name in options if name not in _NAMES]:
        raise PlexusError(f"there is no option {unknown[0]!r}; there are {', '.join(_NAMES)}")
    seed, session = _seed(options.get("seed", 0)), options.get("session")
    where = _folder(options.get("folder"))
    if session is not None:
        if not isinstance(session, Session):
            raise PlexusError(f'session is one that plexus.Session("tiny") gives, not {session!r}')
        if twice := [name for name in _OF_SESSION if name in options]:
            raise PlexusError(f"{twice[0]} is that of the session; leave it out")
        cfg, device, check = session.config, session.device, session.check
    else:
        device, check = options.get("device", "rtl"), need_check(str(options.get("check", "golden")))
        if device not in DEVICES:
            raise PlexusError(f"device must be {' or '.join(DEVICES)}, not {device!r}")
        own = "small" if program is None else program.config
        cfg = load_config(options.get("config", own), options.get("settings", ()))
    if program is not None and program.config != cfg:
        raise PlexusError(
            f"program {program.name} was built for {program.config.name} ({program.config.hash}), and this run is on "
            f"{cfg.name} ({cfg.hash}); build it for that one"
        )
    array, fast = options.get("array", ARRAYS[0]), options.get("fast", False)
    if array not in ARRAYS:
        raise PlexusError(f"array must be {' or '.join(ARRAYS)}, not {array!r}")
    if not isinstance(fast, bool):
        raise PlexusError(f"fast must be True or False, not {fast!r}")
    return Settled(
        cfg=cfg, device=device, check=check, seed=seed, folder=where, session=session, array=array, fast=fast
    )
