"""Results of the golden machine, kept by the content of the program and of the golden code: what differs only in time
is compared with bits that are there already."""

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from firmware.image import Image
from rtl.contract.config import Config
from sim.build.sources import sources_of
from sim.toolchain import build_root
from sim.whole_file import whole_file

__all__ = ["BITS_DEPEND_ON", "KEPT_BYTES", "Kept", "golden_key", "keep_golden", "kept_golden"]

KEPT_BYTES = 1 << 30
"""In build/golden; the oldest go first."""

BITS_DEPEND_ON = (
    "partitions", "tensor.rows", "tensor.cols", "tensor.row_groups", "tensor.moving_max", "tensor.mx", "tensor.nvfp4",
    "tensor.sparsity", "sbuf.partition_bytes", "psum.banks", "psum.bank_bytes", "scalar.table_rows", "issue.semaphores",
    "sbuf.adders", "dma.classes", "dma.indirect", "dma.rings", "hbm.capacity_mib", "gpsimd.enabled",
    "gpsimd.local_bytes", "gpsimd.vectors",
)  # fmt: skip
"""Fields that decide whether a program faults, or what it leaves; all others decide when."""


_BITS, _TEXT = "bits ", "text of "


def _values(cfg: Config) -> dict[str, Any]:
    """What the golden machine may read of a configuration; a test holds it to that."""
    found: dict[str, Any] = {}
    for key in BITS_DEPEND_ON:
        section, _, name = key.rpartition(".")
        found[key] = getattr(getattr(cfg, section) if section else cfg, name)
    return found


def golden_key(cfg: Config, image: Image) -> str:
    """Names the bits that this program leaves on this configuration: all of its memory and what it starts, what
    BITS_DEPEND_ON says, and every source of the golden machine."""
    what = {
        "config": _values(cfg),
        "golden": sources_of(["verif.golden.machine"], ()).digest,
        "starts": [sorted((int(q), *place) for q, place in image.queues.items()), [list(ring) for ring in image.rings]],
        "outputs": {name: [int(r.space), r.offset, list(r.shape), str(r.dtype)] for name, r in image.outputs.items()},
        "numpy": np.__version__,
    }
    digest = hashlib.sha256(json.dumps(what, sort_keys=True).encode())
    digest.update(image.memory().tobytes())
    return digest.hexdigest()[:24]


def _place(key: str) -> Path:
    return build_root() / "golden" / f"{key}.npz"


@dataclass(frozen=True, slots=True)
class Kept:
    """Bits of outputs by name, and what programs have printed, by GPSIMD core."""

    outputs: dict[str, np.ndarray]
    printed: dict[int, bytes]


def kept_golden(key: str) -> Kept | None:
    """What is kept under that key, None if nothing is."""
    path = _place(key)
    try:
        with np.load(path, allow_pickle=False) as found:
            arrays = {name: found[name] for name in found.files}
    except (OSError, ValueError, EOFError, KeyError):
        return None
    with suppress(OSError):
        os.utime(path)
    return Kept(
        {name.removeprefix(_BITS): bits for name, bits in arrays.items() if name.startswith(_BITS)},
        {int(name.removeprefix(_TEXT)): text.tobytes() for name, text in arrays.items() if name.startswith(_TEXT)},
    )


def keep_golden(key: str, outputs: Mapping[str, np.ndarray], printed: Mapping[int, bytes]) -> None:
    """Keep them, unless the disk is full: they are only a shortcut."""
    path = _place(key)
    arrays = {f"{_BITS}{name}": bits for name, bits in outputs.items()}
    arrays |= {f"{_TEXT}{core}": np.frombuffer(text, np.uint8) for core, text in printed.items()}
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as place, place.open("wb") as out:
            np.savez(out, **arrays)  # pyright: ignore[reportArgumentType]
        _tidy(path.parent)


def _tidy(folder: Path) -> None:
    files = sorted(((p.stat().st_mtime, p.stat().st_size, p) for p in folder.glob("*.npz")), reverse=True)
    total = 0
    for _, size, path in files:
        total += size
        if total > KEPT_BYTES:
            path.unlink(missing_ok=True)
