"""The library of operators: images of firmware/gpsimd/lib, committed, so that kernels need no compiler.

One is for cores without vectors and one for those with them. `python -m firmware.gpsimd.library` tells whether they are
what their sources say; with --write they are built again.
"""

import hashlib
import sys
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from firmware.gpsimd.build import OURS, build
from firmware.gpsimd.elf import read_image
from firmware.gpsimd.errors import FirmwareError
from firmware.gpsimd.image import Image
from firmware.gpsimd.link_script import link_script
from firmware.gpsimd.options import FLAGS, FOLDER, Options
from firmware.gpsimd.tools import compiler_version
from rtl.contract.gpsimd import LOCAL_BYTES_MIN

__all__ = [
    "IMAGES",
    "LIBRARY_BYTES_MAX",
    "RECORD",
    "build_library",
    "library",
    "loaded_bytes",
    "main",
    "record_of",
    "source_digest",
]

LIBRARY = FOLDER / "lib"
RECORD = LIBRARY / "lib.toml"
IMAGES = {False: LIBRARY / "lib.elf", True: LIBRARY / "lib-vectors.elf"}
"""By whether the cores have vectors."""
OPTIONS = {
    vectors: Options(vector=vectors, local_bytes=LOCAL_BYTES_MIN, stack_bytes=1536, lines=False) for vectors in IMAGES
}
"""For cores of every configuration: the smallest local memory, no paths."""

LIBRARY_BYTES_MAX = 1 << 14
"""Loaded bytes."""


def _sources() -> list[Path]:
    return sorted(LIBRARY.glob("*.cpp"))


def source_digest() -> str:
    """Of everything that the images are made of, but the compiler."""
    files = [*OURS, *_sources(), *LIBRARY.glob("*.h"), *(FOLDER / "include").rglob("*.h")]
    digest = hashlib.sha256(repr((FLAGS, OPTIONS)).encode())
    for options in OPTIONS.values():
        digest.update(link_script(options.local_bytes, options.stack_bytes).encode())
    for path in sorted(files):
        digest.update(f"\n{path.relative_to(FOLDER).as_posix()}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def record_of(built: Mapping[bool, Path], compiler: str) -> str:
    """Text of lib.toml for such images of the sources as they are."""
    text = (
        "# Written by `python -m firmware.gpsimd.library --write`.\n"
        f'sources = "{source_digest()}"\n'
        f'compiler = "ziglang {compiler}"\n'
    )
    for vectors, path in built.items():
        text += f'\n["{IMAGES[vectors].name}"]\nimage = "{hashlib.sha256(path.read_bytes()).hexdigest()}"\n'
        text += f"loaded_bytes = {loaded_bytes(read_image(path))}\n"
    return text


def loaded_bytes(image: Image) -> int:
    """Of local memory, that GP_LOAD fills."""
    return sum(section.size_bytes for section in image.loaded)


def build_library() -> tuple[dict[bool, Path], str]:
    """Images in the build folder and their record, by the compiler.

    FirmwareError: no compiler, its own lines, more than 16 KiB.
    """
    built = {vectors: build(_sources(), options=options).path for vectors, options in OPTIONS.items()}
    for vectors, path in built.items():
        if (loaded := loaded_bytes(read_image(path))) > LIBRARY_BYTES_MAX:
            name = IMAGES[vectors].name
            raise FirmwareError(f"{name} has {loaded:,} bytes to load, more than {LIBRARY_BYTES_MAX:,}")
    return built, record_of(built, compiler_version())


@cache
def library(*, vectors: bool = False) -> Image:
    """The committed image, for cores with or without vectors."""
    return read_image(IMAGES[vectors])


def main(arguments: list[str]) -> int:
    """Compare, or with --write renew; 1 if an image is not what its sources say, 2 if it cannot be built."""
    if "--write" in arguments:
        try:
            built, record = build_library()
        except FirmwareError as error:
            print(error.said, f"plexus: {error}", sep="\n" if error.said else "", file=sys.stderr)
            return 2
        for vectors, new in built.items():
            path, data = IMAGES[vectors], new.read_bytes()
            changed = not path.is_file() or path.read_bytes() != data
            path.write_bytes(data)
            size = loaded_bytes(read_image(path))
            print(f"{path.relative_to(FOLDER)}: {size:,} bytes loaded, {'written' if changed else 'as it was'}")
        RECORD.write_text(record)
        return 0
    fresh = tomllib.loads(RECORD.read_text())["sources"] == source_digest()
    print(f"{LIBRARY.relative_to(FOLDER)} is {'' if fresh else 'not '}what its sources say")
    return int(not fresh)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
