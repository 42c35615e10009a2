"""A user's program on the GPSIMD cores: operands from arrays, the result and the signature back."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from firmware.gpsimd.elf import read_image
from firmware.gpsimd.errors import FirmwareError
from firmware.gpsimd.image import Image
from firmware.kernel import Kernel, KernelError, Tile
from firmware.kernels.local_words import local_words
from firmware.npz import read_npz
from firmware.numbers import bits_dtype
from firmware.program import Program
from rtl.contract.config import Config

__all__ = ["OPERANDS", "gpsimd_program", "read_operands"]

OPERANDS = ("src0", "src1", "dst")
IMMEDIATES = ("imm1", "imm2")
FORMATS = {
    "float32": "fp32",
    "float16": "fp16",
    **{name: name for name in ("int8", "uint8", "int16", "uint16", "int32", "uint32")},
}
"""Format of SBUF by what a NumPy array holds; other formats come as their bits."""


def read_operands(path: Path, partitions: int) -> dict[str, np.ndarray]:
    """src0, src1, dst, imm1 and imm2 of an .npz file, those that are there. KernelError: name, value and rule."""
    found = read_npz(path)
    for name, array in found.items():
        if name in IMMEDIATES:
            whole = array.ndim == 0 and array.dtype.kind in "iu"
            if not (whole and 0 <= int(array) < 1 << 64):
                raise KernelError(
                    f"{path}: {name} must be one whole number of 64 bits without sign, not {array.dtype} {array!s:.40}"
                )
            continue
        if name not in OPERANDS:
            raise KernelError(f"{path}: a program takes {', '.join(OPERANDS + IMMEDIATES)}, and no {name!r}")
        if array.dtype.name not in FORMATS:
            raise KernelError(f"{path}: {name} is of {array.dtype}; SBUF takes {', '.join(FORMATS)}")
        if array.ndim != 2 or 0 in array.shape or array.shape[0] > partitions:
            raise KernelError(
                f"{path}: {name} must be [partitions, columns] with at most {partitions} partitions, and its shape is "
                f"{array.shape}"
            )
    return found


def _image(elf: Path) -> Image:
    try:
        return read_image(elf)
    except FirmwareError as error:
        raise KernelError(str(error)) from None


def gpsimd_program(
    cfg: Config,
    elf: Path,
    operands: Mapping[str, np.ndarray],
    *,
    entry: str | None = None,
    cores: int | None = None,
    watchdog_cycles: int = 0,
) -> Program:
    """One GP_RUN of the image in `elf` on the first `cores`; all if None, or core 0 alone if the image has `tohost`.

    Outputs: `dst`, and `signature`, if the image has begin_signature and end_signature, of core 0.
    """
    image = _image(elf)
    k = Kernel(cfg, elf.stem)
    count = 1 if cores is None and "tohost" in image.symbols else cores
    chosen = None if count is None else tuple(range(count))
    k.gpsimd.load(image, chosen)
    tiles: dict[str, Tile] = {}
    for name in OPERANDS:
        if name in operands:
            array = np.ascontiguousarray(operands[name])
            fmt = FORMATS[array.dtype.name]
            rows, columns = array.shape
            tiles[name] = k.sbuf(f"{name} tile", partitions=rows, columns=columns, dtype=fmt)
            given = k.hbm(f"{name} given", array.shape, fmt, array.view(bits_dtype(fmt)))
            k.dma(tiles[name][:, :], given[:, :])
    views = {name: tile[:, :] for name, tile in tiles.items()}
    k.gpsimd.run(
        image,
        entry,
        src=views.get("src0"),
        src1=views.get("src1"),
        dst=views.get("dst"),
        args=(int(operands.get("imm1", 0)), int(operands.get("imm2", 0))),
        cores=chosen,
        watchdog_cycles=watchdog_cycles,
    )
    kinds: dict[str, np.dtype] = {}
    if "dst" in operands:
        kinds["dst"] = operands["dst"].dtype
        k.dma(k.hbm("dst", operands["dst"].shape, tiles["dst"].dtype)[:, :], views["dst"])
    first, end = (image.symbols.get(f"{edge}_signature") for edge in ("begin", "end"))
    if first is not None and end is not None and first != end:
        kinds["signature"] = np.dtype(np.uint32)
        local_words(k, "signature", first - image.base, end - image.base)
    program = k.program()
    program.arrays = lambda outputs: {name: outputs[name].view(kind) for name, kind in kinds.items()}
    return program
