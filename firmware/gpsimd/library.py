"""The library of operators: one image of firmware/gpsimd/lib, committed, so that kernels need no compiler.

`python -m firmware.gpsimd.library` tells whether it is what its sources say; with --write it is built again.
"""

import hashlib
import sys
import tomllib
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

__all__ = ["IMAGE", "LIBRARY_BYTES_MAX", "RECORD", "build_library", "library", "main", "record_of", "source_digest"]

LIBRARY = FOLDER / "lib"
IMAGE, RECORD = LIBRARY / "lib.elf", LIBRARY / "lib.toml"
OPTIONS = Options(vector=False, local_bytes=LOCAL_BYTES_MIN, stack_bytes=2048, lines=False)
"""For cores of every configuration: the smallest local memory, no vectors, no paths."""

LIBRARY_BYTES_MAX = 1 << 14
"""Loaded bytes."""


def _sources() -> list[Path]:
    return sorted(LIBRARY.glob("*.cpp"))


def source_digest() -> str:
    """Of everything that the image is made of, but the compiler."""
    files = [*OURS, *_sources(), *LIBRARY.glob("*.h"), *(FOLDER / "include").rglob("*.h")]
    digest = hashlib.sha256(repr((FLAGS, OPTIONS)).encode())
    digest.update(link_script(OPTIONS.local_bytes, OPTIONS.stack_bytes).encode())
    for path in sorted(files):
        digest.update(f"\n{path.relative_to(FOLDER).as_posix()}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def record_of(data: bytes, loaded_bytes: int, compiler: str) -> str:
    """Text of lib.toml for such an image of the sources as they are."""
    return (
        "# Written by `python -m firmware.gpsimd.library --write`.\n"
        f'sources = "{source_digest()}"\n'
        f'image = "{hashlib.sha256(data).hexdigest()}"\n'
        f'compiler = "ziglang {compiler}"\n'
        f"loaded_bytes = {loaded_bytes}\n"
    )


def build_library() -> tuple[bytes, str]:
    """The image and its record, by the compiler. FirmwareError: no compiler, its own lines, more than 16 KiB."""
    path = build(_sources(), options=OPTIONS).path
    loaded = sum(section.size_bytes for section in read_image(path).loaded)
    if loaded > LIBRARY_BYTES_MAX:
        raise FirmwareError(f"the library of operators has {loaded:,} bytes to load, more than {LIBRARY_BYTES_MAX:,}")
    data = path.read_bytes()
    return data, record_of(data, loaded, compiler_version())


@cache
def library() -> Image:
    """The committed image."""
    return read_image(IMAGE)


def main(arguments: list[str]) -> int:
    """Compare, or with --write renew; 1 if the image is not what its sources say, 2 if it cannot be built."""
    if "--write" in arguments:
        try:
            data, record = build_library()
        except FirmwareError as error:
            print(error.said, f"plexus: {error}", sep="\n" if error.said else "", file=sys.stderr)
            return 2
        changed = not IMAGE.is_file() or IMAGE.read_bytes() != data or RECORD.read_text() != record
        IMAGE.write_bytes(data)
        RECORD.write_text(record)
        size = tomllib.loads(record)["loaded_bytes"]
        print(f"{IMAGE.relative_to(FOLDER)}: {size:,} bytes loaded, {'written' if changed else 'as it was'}")
        return 0
    fresh = tomllib.loads(RECORD.read_text())["sources"] == source_digest()
    print(f"{IMAGE.relative_to(FOLDER)} is {'' if fresh else 'not '}what its sources say")
    return int(not fresh)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
