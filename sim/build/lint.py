"""Verilog of a top through Verilator's checks, without a model, once for each content.

What is repeated is looked at once: each hierarchical block as a top of its own, and the whole with the blocks' bodies
left out. So 72 ports of a switch cost one. A loop through several blocks is not seen this way; verif.checks.loops
looks for those.
"""

import hashlib
import json
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rtl.contract.any_config import AnyConfig
from rtl.emit.verilog import Emitted
from sim.build.component import make_component
from sim.build.sources import sources_of
from sim.build.step import BuildError
from sim.build.tops import top as find_top
from sim.build.waivers import waiver_text
from sim.toolchain import activate, build_root, environment, tool_versions, verilator_root

__all__ = ["LINT_FLAGS", "Linted", "lint", "lint_text", "warnings_of", "without_bodies"]

LINT_FLAGS = (
    "-Wno-lint",  # widths and the like: Yosys wrote the text, Amaranth has checked them
    "-Wno-style",
    "-Wno-ALWNEVER",  # a process of constants
    "-Werror-UNOPTFLAT",  # a combinational loop
)
_DECLARED = re.compile(r"^\s*(?:input|output)\s+[^;]*;", re.M)


@dataclass(frozen=True, slots=True, kw_only=True)
class Linted:
    """A top that passed. `megabytes` of Verilog; seconds to convert and to check it, of that time if it is `cached`."""

    top: str
    megabytes: float
    convert_seconds: float
    lint_seconds: float
    cached: bool


def without_bodies(text: str, modules: Iterable[str]) -> str:
    """The Verilog with only the ports left of these modules."""
    for name in modules:
        begin = text.index(f"module {name}(")
        end = text.index("endmodule", begin)
        head = text.index(";", begin) + 1
        text = "\n".join([text[:head], *_DECLARED.findall(text, head, end), text[end:]])
    return text


def _words(text: str, top: str, files: Iterable[str], folder: Path, flags: Iterable[str], waived: bool) -> str:
    """What Verilator says against the module `top`; nothing if it has nothing to say."""
    path = folder / f"{top}.{os.getpid()}.v"
    control = path.with_suffix(".vlt")
    path.write_text(text)
    control.write_text(waiver_text(path.name) if waived else "`verilator_config\n")
    tool = str(verilator_root() / "bin" / "verilator_bin")
    try:
        done = subprocess.run(
            [tool, "--lint-only", "--no-timing", *flags, "--top-module", top, str(control), *files, str(path)],
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        path.unlink()
        control.unlink()
    return done.stderr.replace(str(path), f"{top}.v") or f"code {done.returncode}" if done.returncode else ""


def lint_text(text: str, top: str, blocks: Iterable[str], sources: Iterable[Path], folder: Path) -> None:
    """Check the Verilog of `top` and of each block in it. Errors: BuildError with Verilator's words."""
    blocks = tuple(blocks)
    files = [str(s) for s in sources if s.suffix in (".v", ".sv")]
    for name, what in [*((block, text) for block in blocks), (top, without_bodies(text, blocks))]:
        words = _words(what, name, files, folder, LINT_FLAGS, False)
        if words:
            raise BuildError(f"Verilator refuses {name}:\n{words[-2000:]}")


def warnings_of(emitted: Emitted) -> list[str]:
    """All that Verilator has against an emitted top with -Wall but what waivers.py names: its words, one by one."""
    files = [str(s) for s in emitted.sources if s.suffix in (".v", ".sv")]
    blocks = emitted.hier_blocks
    whole = ["-Wall", *(["-Wno-UNDRIVEN"] if blocks else [])]  # outputs of blocks whose bodies are left out
    found: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, text, flags in [
            *((block, emitted.text, ["-Wall"]) for block in blocks),
            (emitted.top, without_bodies(emitted.text, blocks), whole),
        ]:
            words = _words(text, name, files, Path(folder), flags, True)
            found += [w.strip() for w in re.split(r"^(?=%)", words, flags=re.M) if w.strip()]
    return [words for words in found if not words.startswith("%Error: Exiting due to")]


def _kept(path: Path, *keys: str) -> dict[str, Any] | None:
    """What was saved there, if it has these keys and no others; a spoiled file counts as none."""
    try:
        kept = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return kept if isinstance(kept, dict) and set(kept) == set(keys) else None


def lint(top: str, cfg: AnyConfig, options: Mapping[str, Any] | None = None) -> Linted:
    """Convert `top` and check it, if not both it and what it is made of are what passed before.

    Errors: PlexusError in a sentence, BuildError with Verilator's words.
    """
    from rtl.emit.verilog import emit

    chosen, given = find_top(top), dict(options or {})
    sources = sources_of([chosen.factory.partition(":")[0], "rtl.emit.verilog", "sim.build.lint"])
    what = [chosen.factory, cfg.as_dict() | {"name": ""}, given, sources.digest, tool_versions()]
    folder = build_root() / "lint"
    folder.mkdir(parents=True, exist_ok=True)
    record = folder / f"{top}-{_digest(what)}.json"
    if (kept := _kept(record, "top", "megabytes", "convert_seconds", "lint_seconds")) is not None:
        return Linted(**kept, cached=True)
    activate()
    begin = time.monotonic()
    emitted = emit(make_component(chosen, cfg, given), "top")
    middle = time.monotonic()
    cells = [s.read_text() for s in emitted.sources if s.suffix in (".v", ".sv")]
    passed = folder / f"{top}-{_digest([emitted.text, cells, LINT_FLAGS, tool_versions()])}.passed.json"
    same = _kept(passed, "lint_seconds")
    if same is None:
        lint_text(emitted.text, "top", emitted.hier_blocks, emitted.sources, folder)
        same = {"lint_seconds": round(time.monotonic() - middle, 1)}
        passed.write_text(json.dumps(same))
    kept = {
        "top": top,
        "megabytes": round(len(emitted.text) / 1e6, 1),
        "convert_seconds": round(middle - begin, 1),
        **same,
    }
    record.write_text(json.dumps(kept))
    return Linted(**kept, cached=False)


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:20]
