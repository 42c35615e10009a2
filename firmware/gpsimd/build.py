"""Sources to an image: clang out of Zig's wheel, our start code, runtime and linker script, a cache by content.

An image lies in build/firmware/<hash>/ with its record: the files it was made of and their digests, headers too.
"""

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

from firmware.gpsimd.errors import FirmwareError
from firmware.gpsimd.link_script import link_script
from firmware.gpsimd.options import CXX, FLAGS, FOLDER, LANGUAGES, RUNTIME, SCALAR, Options
from firmware.gpsimd.tools import build_folder, compiler, compiler_version, cplusplus_headers

__all__ = ["Built", "build"]

OURS = (FOLDER / "crt0.S", *sorted((FOLDER / "runtime").iterdir()))

Step = Callable[[str], None]
Tick = Callable[[], None]
"""Told what the build is doing, and that it is still doing it."""

_TICK_SECONDS = 0.2


@dataclass(frozen=True)
class Built:
    """An image, and whether it was there before. `warnings` are the compiler's lines."""

    path: Path
    cached: bool
    warnings: str = ""


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _run(arguments: Sequence[str], what: str, tick: Tick) -> str:
    """What the compiler said. FirmwareError with its lines and the sentence if it failed."""
    cache = str(build_folder() / "zig")
    environment = {**os.environ, "ZIG_GLOBAL_CACHE_DIR": cache, "ZIG_LOCAL_CACHE_DIR": cache}
    with subprocess.Popen(
        [str(compiler()), *arguments],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment,
    ) as process:  # fmt: skip
        while True:
            try:
                said = process.communicate(timeout=_TICK_SECONDS)[1].strip()
                break
            except subprocess.TimeoutExpired:
                tick()
            except BaseException:
                process.kill()
                raise
    if process.returncode:
        raise FirmwareError(what, said)
    return said


def _checked(sources: Sequence[Path]) -> list[Path]:
    """The sources, once each. FirmwareError if one is none."""
    if not sources:
        raise FirmwareError("an image needs a source: a file that ends in " + ", ".join(LANGUAGES))
    found = []
    for source in sources:
        if source.suffix not in LANGUAGES:
            raise FirmwareError(f"{source}: a source ends in {', '.join(LANGUAGES)}")
        if not source.is_file():
            raise FirmwareError(f"{source}: there is no such file")
        if source.resolve() in (other.resolve() for other in found):
            raise FirmwareError(f"{source} is given twice")
        found.append(source)
    return found


def _key(sources: Sequence[Path], options: Options) -> str:
    """Names what is built how; contents are in the record."""
    named = [str(source.resolve()) for source in sources]
    script = link_script(options.local_bytes, options.stack_bytes)
    made = [compiler_version(), FLAGS, RUNTIME, SCALAR, LANGUAGES, options.cpu, options.flags, options.lines]
    made += [script, named]
    return hashlib.sha256(json.dumps(made).encode()).hexdigest()[:16]


def _kept(folder: Path) -> Built | None:
    """The image of an earlier build, if everything it was made of is as it was."""
    try:
        record = json.loads((folder / "record.json").read_text())
        files: dict[str, str] = record["files"]
        if all(_digest(Path(name)) == digest for name, digest in files.items()):
            if _digest(folder / "image.elf") == record["image"]:
                return Built(folder / "image.elf", True, record["warnings"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return None


def _needed(rule: Path) -> list[str]:
    """Files named by a rule that the compiler has written for make."""
    text = rule.read_text().replace("\\\n", " ").partition(": ")[2]
    return [name.replace("\0", " ") for name in text.replace("\\ ", "\0").split()]


def _compile(source: Path, into: Path, options: Options, tick: Tick) -> tuple[Path, str]:
    """The object of a source, with a make rule beside it, and what the compiler said."""
    target = into / f"{len(list(into.glob('*.o')))}-{source.name}.o"  # two sources may have one name
    language = LANGUAGES[source.suffix]
    flags = [*FLAGS, f"-mcpu={options.cpu}", f"-I{FOLDER / 'include'}", *language]
    flags += cplusplus_headers(FOLDER / "include") if language is CXX else (f"-I{FOLDER / 'include' / 'c'}",)
    flags += RUNTIME if source in OURS else options.flags
    flags += SCALAR if source in OURS and source.name != "memory.c" else ()
    flags += () if options.lines else ("-g0",)
    tool = "c++" if language is CXX else "cc"
    rule = target.with_suffix(".d")
    arguments = [tool, *flags, "-MMD", "-MF", str(rule), "-c", str(source), "-o", str(target)]
    return target, _run(arguments, f"{source} could not be compiled: the compiler's words are above", tick)


def build(
    sources: Sequence[Path],
    output: Path | None = None,
    options: Options | None = None,
    step: Step = lambda _: None,
    tick: Tick = lambda: None,
) -> Built:
    """Compile and link. The image is copied to `output`; without one it stays where the cache has it.

    FirmwareError: a source that is none, the compiler's own lines and a sentence, an image larger than local memory.
    """
    options = options or Options()
    checked = _checked(sources)
    script = link_script(options.local_bytes, options.stack_bytes)
    folder = build_folder() / _key(checked, options)
    built = _kept(folder)
    if built is None:
        folder.parent.mkdir(parents=True, exist_ok=True)
        work = Path(mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        try:
            built = _fresh(checked, options, script, work, folder, step, tick)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    if output is None:
        return built
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        temporary = output.with_name(f".{output.name}-{os.getpid()}")
        shutil.copyfile(built.path, temporary)
        temporary.replace(output)
    except OSError as error:
        raise FirmwareError(f"{output} cannot be written: {error.strerror}") from None
    return Built(output, built.cached, built.warnings)


def _fresh(
    sources: list[Path], options: Options, script: str, work: Path, folder: Path, step: Step, tick: Tick
) -> Built:
    objects, warnings = [], []
    for source in (*OURS, *sources):
        step(f"compile {source.name}")
        made, said = _compile(source, work, options, tick)
        objects.append(made)
        warnings += [said] if said else []
    needed = {name for rule in work.glob("*.d") for name in _needed(rule)}
    needed |= {str(source.resolve()) for source in (*OURS, *sources)}
    step("link")
    (work / "link.ld").write_text(script)
    image = work / "image.elf"
    flags = [*FLAGS, f"-mcpu={options.cpu}", "-T", str(work / "link.ld"), "-Wl,--gc-sections"]
    names = ", ".join(source.name for source in sources)
    said = _run(
        ["cc", *flags, *map(str, objects), "-o", str(image)],
        f"{names} could not be linked (local memory of {options.local_bytes:,} bytes, {options.stack_bytes:,} of them "
        "stack): the linker's words are above",
        tick,
    )
    warnings += [said] if said else []
    record = {
        "files": {name: _digest(Path(name)) for name in sorted(needed)},
        "image": _digest(image),
        "warnings": "\n".join(warnings),
    }
    folder.mkdir(exist_ok=True)
    (folder / "record.json").unlink(missing_ok=True)
    image.replace(folder / "image.elf")
    (work / "record.json").write_text(json.dumps(record, indent=1))
    (work / "record.json").replace(folder / "record.json")
    return Built(folder / "image.elf", False, record["warnings"])
