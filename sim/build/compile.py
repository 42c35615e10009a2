"""Verilog to a running model: Verilator, then the C++ compiler, all inside one folder.

Two kinds: `cocotb` is a program with cocotb's interface inside, `native` a shared library with the
C++ files of a driver. What is the same for every design (Verilator's runtime, our C++ cells) is
compiled once and kept under build/objects (sim/build/objects.py).
"""

import json
import re
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import cocotb_tools.config

from rtl.emit.verilog import CELLS, Emitted
from sim.build.coverage import FLAGS, uncounted, write_places
from sim.build.guided import Training, compile_guided
from sim.build.host import Host
from sim.build.joined import join_runtime, join_slow
from sim.build.objects import Runtime, compile_object
from sim.build.one_file import compile_as_one
from sim.build.step import BuildError, run_step
from sim.progress import Progress
from sim.toolchain import FST_HEADERS, MAKE_VARIABLES, compiler, compiler_says, verilator_root

__all__ = ["Port", "compile_model", "ports_of", "read_ports"]

_EXACT = ("-ffp-contract=off", "-std=c++17", "-fPIC")
"""For the C++ of cells: never fused or reordered behind our back, for the bits must be right."""

CELL_FLAGS = ("-O3", *_EXACT)
LANE_FLAGS = ("-O1", *_EXACT, "-Wno-psabi")
"""For lanes, which are written as vectors: at -O3 they take the compiler a half longer and run no faster."""

NATIVE_FLAGS = (
    "-fPIC",
    "-fno-gnu-unique",  # two models in one process share nothing
    "-DVL_USER_FATAL",  # the driver turns a failure in the model into an exception
    "-DVL_USER_STOP",
    "-DVL_USER_FINISH",
)
"""For all C++ of a native model, Verilator's runtime too."""

_ONE_THREAD = Path(__file__).resolve().parents[1] / "native" / "one_thread.cpp"

_PORT = re.compile(r"^\s*(input|output)\s+(?:wire\s+|reg\s+)?(?:signed\s+)?(?:\[(\d+):0\]\s+)?(\w+)\s*;", re.M)

_LARGE_TEXT_BYTES = 2_000_000
"""Up to here a bench's model is one file that one_file.py compiles: make would precompile two headers of the design for
ten files that each read them. The benches run as fast."""


@dataclass(frozen=True, slots=True)
class Port:
    """A port of the top module; `direction` is input or output."""

    name: str
    direction: str
    width: int


def ports_of(emitted: Emitted) -> list[Port]:
    """The ports of the top module, in the order of the text."""
    return [Port(name, way, int(high or 0) + 1) for way, high, name in _PORT.findall(emitted.ports())]


def read_ports(path: Path) -> list[Port]:
    """What compile_model left in ports.json."""
    return [Port(*entry) for entry in json.loads(path.read_text())]


def _cpp_name(name: str) -> str:
    """The name Verilator gives the member of the model class."""
    return name.replace("__", "___05F")


def _header(ports: Iterable[Port]) -> str:
    """For a driver: one macro that lists every port as X(name, C++ name, direction, width)."""
    lines = ["#pragma once", "#define PLEXUS_INPUT 0", "#define PLEXUS_OUTPUT 1"]
    lines += [f"#define PLEXUS_HAS_{p.name} {p.width}" for p in ports]
    lines.append("#define PLEXUS_PORTS(X) \\")
    lines += [f"  X({p.name}, {_cpp_name(p.name)}, PLEXUS_{p.direction.upper()}, {p.width}) \\" for p in ports]
    return "\n".join(lines) + "\n\n"


def _config(emitted: Emitted, ports: Iterable[Port], kind: str, coverage: bool) -> str:
    """Verilator's control file: what cocotb may see, what is compiled by itself, and what is not counted.

    Only the ports are public: making all signals public costs 40 % of a core's speed.
    """
    lines = ["`verilator_config"]
    if kind == "cocotb":
        lines += [f'public_flat_rw -module "{emitted.top}" -var "{p.name}"' for p in ports]
    lines += [f'hier_block -module "{name}"' for name in emitted.hier_blocks]
    if coverage:
        lines += [f'coverage_off -file "top.v" -lines {a}-{b}' for a, b in uncounted(emitted.text)]
    return "\n".join(lines) + "\n"


_GROUPED_TEXT_BYTES = 5_000_000
"""Up to here the C++ of a model that runs long is joined into a few files before it is compiled: each of the fifty that
Verilator writes for a core at `small` costs a third of a second to begin with (54 CPU seconds, 45 joined), and it runs
as fast. A larger core ran 3 to 5 % slower in fewer files."""
_GROUPS = 4

_LONG_FLAGS = (
    "-O1",
    "-ftree-vectorize",
    "-fstrict-aliasing",
    "-ftree-loop-distribute-patterns",
    "-ftree-vrp",
    "-fexpensive-optimizations",
)
"""For a model that runs long, beside those of its host. With all of -O2 the compiler takes a tenth more time and the
core at `full` runs a tenth slower; without -fstrict-aliasing wide words are copied one by one."""

_UNREWARDED = (
    "-fno-code-hoisting",
    "-fno-tree-pre",
    "-fno-tree-sink",
    "--param=sccvn-max-alias-queries-per-access=30",
    "--param=dse-max-alias-queries-per-store=16",
)
"""What ends searches of g++ from each load back over all stores before it. A model's functions store thousands of wide
words: at -O2 the searches are a third of the compilation (138 CPU seconds at `full`, 97 without), and gain nothing."""

_WIDE = ("--expand-limit", "12")
"""Words of an expression up to which Verilator writes them out one by one; 64 if not told. Longer ones, which a core
has many of, become loops: at `small` 25 MB of C++ and not 29, a tenth less processor time, and a GEMM of 512 runs at
180,000 cycles/s (168,000 at 64; 175,000 at 16, 170,000 at 8, 164,000 at 4), at `full` at 46,000 and not 39,000."""

_ROOMY_MALLOC = "glibc.malloc.tcache_count=60000:glibc.malloc.top_pad=67108864:glibc.malloc.hugetlb=1"
"""Verilator takes and frees small nodes all the time: with more of them at hand, and in large pages, it needs a fifth
less time. Other C libraries do not know the variable."""


def _effort(kind: str, host: Host | None) -> dict[str, str]:
    """Variables of make that spare the compiler work whose fruit nobody would see, or let it do all it can.

    At -O2 the functions that Verilator makes of a 16-port switch (3.2 MB) take g++ three times as long as at -O1 and
    run no faster (80 and 215 s of compilation, 15,400 and 15,600 cycles/s beside the same load); those of two ports of
    a link take it 20 and 12 s, and run as fast. A bench's DMA takes 36 s at -O1, 28 without what is unrewarded.
    """
    long = host is not None and kind == "native"
    known = [*(_LONG_FLAGS if long else ("-O1",)), *_UNREWARDED]  # to g++
    flags = known if compiler_says(*known, "-E", "-x", "c++") else ["-O2" if long else "-O1"]
    if kind == "cocotb":
        return {"OPT_FAST": " ".join(flags)}
    return {"OPT_FAST": " ".join([*flags, *(host.flags if host else ())]), "OPT_GLOBAL": "-O1"}


def _verilator(hier: bool) -> list[str]:
    """The command that is Verilator, with a stack as deep as the system allows.

    Its perl script does the same in 20 times as long; the makefile of a hierarchical build starts that script.
    """
    tools = verilator_root() / "bin"
    if hier:
        return ["perl", str(tools / "verilator")]
    prepared = f'ulimit -s unlimited 2>/dev/null || :; export GLIBC_TUNABLES={_ROOMY_MALLOC}; exec "$0" "$@"'
    return ["/bin/sh", "-c", prepared, str(tools / "verilator_bin")]


def _turn_to_whole(arguments: Path, first: str) -> None:
    """Let make, which finds `arguments` newer than what came of them, compile top.v above the blocks made from `first`.

    Shown the whole at once, Verilator looks up every name below each placement of a block before it knows that it will
    compile them apart: 4.8 GiB and 94 s for the structural core at `full`, whose 16,384 PEs are 256 tiles.
    """
    before = arguments.read_text()
    after = before.replace(f"\n{first}\n", "\ntop.v\n")
    if after == before:
        raise BuildError(f"{arguments.name} of this Verilator does not name {first} in a line of its own")
    arguments.write_text(after)


def compile_model(
    folder: Path,
    emitted: Emitted,
    kind: str,
    *,
    extra_cpp: Sequence[Path] = (),
    waves: str = "",
    coverage: bool = False,
    host: Host | None = None,
    profiled: bool = False,
    training: Training | None = None,
    config: Mapping[str, Any] | None = None,
    progress: Progress,
) -> str:
    """Build `emitted` in `folder`; returns the name of the program or library in it.

    Leaves top.v, blocks.v if there are any, top.vlt, ports.json, ports.h, build.log. `extra_cpp` (native kind) may
    include "Vtop.h" and "ports.h" and whatever lies beside them. `coverage`: the model counts lines and toggles;
    blocks are then not compiled apart, and places.json is left too. `host`: the model runs long, on that processor.
    `profiled`: it tells lines of its C++, which stays in obj. `training`: runs that a native model is optimised for, in
    this `config`.
    """
    if coverage:
        emitted = replace(emitted, hier_blocks=())
        write_places(emitted.places, folder)
    log = folder / "build.log"
    ports = ports_of(emitted)
    hier = bool(emitted.hier_blocks)
    first = "blocks.v" if hier else "top.v"
    grouped = kind == "native" and host is not None and not hier and len(emitted.text) <= _GROUPED_TEXT_BYTES
    (folder / "top.v").write_text(emitted.text)
    if hier:
        (folder / first).write_text(emitted.blocks_only())
    (folder / "top.vlt").write_text(_config(emitted, ports, kind, coverage))
    (folder / "ports.json").write_text(json.dumps([[p.name, p.direction, p.width] for p in ports]))
    (folder / "ports.h").write_text(_header(ports))

    include = verilator_root() / "include"
    progress.stage("cells")
    cells = [
        compile_object(s, CELL_FLAGS, log, progress, [include, include / "vltstd", s.parent])
        for s in emitted.sources
        if s.suffix == ".cpp"
    ]
    for text_of, text in emitted.generated.items():
        (folder / text_of).write_text(text)
        flags = [*LANE_FLAGS, *(host.flags if host else ())]
        cells.append(compile_object(folder / text_of, flags, log, progress, [CELLS]))
    verilog = [str(s) for s in emitted.sources if s.suffix in (".sv", ".v")]

    progress.stage("verilate")
    name = "top" if kind == "cocotb" else "libtop.so"
    programs = [cocotb_tools.config.share_dir / "lib" / "verilator" / "verilator.cpp", _ONE_THREAD]
    libs = cocotb_tools.config.libs_dir
    bench = [f"-Wl,-rpath,{libs}", f"-L{libs}", "-lcocotbvpi_verilator"]
    of_waves = [f"-I{FST_HEADERS[0].parent}"] if waves == "fst" else []
    command = [
        *_verilator(hier),
        "--cc", "--exe", "-Mdir", "obj", "--top-module", emitted.top, "--prefix", "Vtop", "-o", f"../{name}",
        "-Wno-fatal", "-Wno-lint", "-Wno-style", "--no-timing", "--timescale", "1ns/1ps", *_WIDE,
    ]  # fmt: skip
    command += [] if profiled else ["--decorations", "none"]  # a third of the text is blanks and remarks on types
    command += ["--hierarchical"] if hier else []
    command += [f"--trace-{waves}"] if waves else []
    command += FLAGS if coverage else []
    command += ["-CFLAGS", *of_waves, "-LDFLAGS", "-L."] if of_waves else []
    if kind == "cocotb":
        command += ["--output-groups", "1"] if hier else []  # each file takes over a second to begin with
        command += ["--vpi", "-LDFLAGS", " ".join(bench), *map(str, programs)]
    else:
        if grouped:
            command += ["--output-groups", str(_GROUPS)]
        command += ["-CFLAGS", " ".join([*NATIVE_FLAGS, f"-I{folder}"]), "-LDFLAGS", "-shared -Wl,-Bsymbolic"]
        command += [str(s) for s in extra_cpp]
        command += [f"-I{s.parent}" for s in extra_cpp[:1]]
    command += [*map(str, cells), "top.vlt", *verilog, first]
    run_step(command, folder, log, progress, "Verilator")
    if hier:
        _turn_to_whole(folder / "obj" / "Vtop__hierMkArgs.f", first)

    progress.stage("compile")
    obj = folder / "obj"
    cxx = compiler()
    variables = {**MAKE_VARIABLES, "CXX": cxx, "LINK": cxx, **_effort(kind, host)}
    runtime = Runtime(f"{kind}, counting" if coverage else kind, waves, [*NATIVE_FLAGS, variables["OPT_GLOBAL"]])
    one_file = kind == "cocotb" and not hier and len(emitted.text) <= _LARGE_TEXT_BYTES
    if not (one_file or waves or coverage or hier):
        variables |= join_runtime(obj)
    if kind == "native" and not (coverage or hier) and len(emitted.text) <= _GROUPED_TEXT_BYTES:
        variables |= join_slow(obj)
    if profiled:
        variables["OPT_FAST"] = f"{variables['OPT_FAST']} -g1"

    def command_with(flags: str, link: str) -> list[str]:
        own = {"OPT_FAST": f"{variables['OPT_FAST']} {flags}".strip(), "LINK": f"{cxx} {link}".strip()}
        pairs = (f"{key}={value}" for key, value in {**variables, **own}.items())
        return ["make", "-j2", "-f", "Vtop_hier.mk" if hier else "Vtop.mk", *pairs]

    make = command_with("", "")
    if one_file:
        libraries = [*map(str, cells), *bench]
        flags = [*variables["OPT_FAST"].split(), *of_waves]
        compile_as_one(
            folder,
            name,
            programs,
            runtime=runtime,
            make=make,
            flags=flags,
            libraries=libraries,
            log=log,
            progress=progress,
        )
    else:
        runtime.lend(obj)
        if waves == "fst":  # Verilator's makefile wants -llz4 -lz; all that is used of them is in the headers
            for library in ("liblz4.a", "libz.a"):
                (obj / library).write_text("!<arch>\n")
        if training is None:
            run_step(make, obj, log, progress, "compiling the model")
        else:
            compile_guided(folder, name, command_with, training, dict(config or {}), log, progress)
        if not hier:
            runtime.keep(obj)
    if not (folder / name).exists():
        raise BuildError(f"the compiler left no {name} in {folder}")
    if profiled:
        for left in obj.glob("*.[oad]"):
            left.unlink()
    else:
        shutil.rmtree(obj, ignore_errors=True)
    with log.open("a") as out:
        out.write(f"done {time.strftime('%Y-%m-%d %H:%M:%S')}\n")
    return name
