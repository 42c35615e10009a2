"""QEMU in user mode as truth of single vector instructions: what it left of each record."""

import os
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from firmware.gpsimd.tools import build_folder, compiler
from verif.checks.vector_records import MEMORY_BYTES, Records, left_type

__all__ = ["Qemu"]

SOURCE = Path(__file__).with_name("executor.c")
FLAGS = ("-target", "riscv32-linux-musl", "-mcpu=generic_rv32+m+a+f+d+c", "-static", "-O2", "-s")
NAMES = ("qemu-riscv32-static", "qemu-riscv32")


class Qemu:
    """Finds the program and builds what it executes. Errors: RuntimeError if there is no QEMU."""

    def __init__(self, program: str | None = None):
        found = program or next((path for name in NAMES if (path := shutil.which(name))), None)
        if found is None:
            raise RuntimeError(f"no {' or '.join(NAMES)}: it is in the package qemu-user-static of Debian")
        self._program = found
        self._executor = build_folder() / "vector-executor"
        self._executor.parent.mkdir(parents=True, exist_ok=True)
        cache = str(build_folder() / "zig")
        environment = {**os.environ, "ZIG_GLOBAL_CACHE_DIR": cache, "ZIG_LOCAL_CACHE_DIR": cache}
        arguments = [str(compiler()), "cc", *FLAGS, str(SOURCE), "-o", str(self._executor)]
        subprocess.run(arguments, check=True, env=environment)

    def version(self) -> str:
        """What it says of itself."""
        said = subprocess.run([self._program, "--version"], check=True, capture_output=True, text=True).stdout
        return said.partition("\n")[0]

    def left(self, records: Records) -> tuple[NDArray[np.void], list[bytes]]:
        """Results of left_type, and what is in memory after each that may use it."""
        cpu = f"rv32,v=false,Zve32f=true,vlen={records.vlen},elen=32,vext_spec=v1.0"
        given = records.given
        with TemporaryDirectory() as folder:
            files = [Path(folder) / name for name in ("in", "out", "memory")]
            head = np.array([len(given), records.vlen // 8], "<u4").tobytes()
            with files[0].open("wb") as file:
                for part in (head, records.memory, given["word"].tobytes(), given.tobytes()):
                    file.write(part)
            arguments = [self._program, "-cpu", cpu, str(self._executor), *map(str, files)]
            subprocess.run(arguments, check=True)
            memory = np.fromfile(files[2], np.uint8).reshape(-1, MEMORY_BYTES)
            return np.fromfile(files[1], left_type(records.vlen)), [row.tobytes() for row in memory]
