"""k.gpsimd: programs of the programmable engine, loaded into local memory of its cores, run, and read back."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from firmware.arguments import at_once, checked
from firmware.builder import Builder
from firmware.copies import place
from firmware.engines.base import Engine, access, caller, need
from firmware.gpsimd.core import core_of, need_fit
from firmware.gpsimd.elf import read_image
from firmware.gpsimd.errors import FirmwareError
from firmware.gpsimd.image import Image
from firmware.gpsimd.placed import WORD_BYTES, Placed, placed
from firmware.program import Place
from firmware.views import HbmView, KernelError, Tile, TileView
from rtl.contract.gpsimd import LOAD, RUN
from rtl.contract.gpsimd import cores as cores_of
from rtl.contract.isa import Opcode, Queue
from rtl.contract.memmap import Space, core_place

__all__ = ["GpsimdEngine"]

_TILE_SHARE = 16  # of SBUF, at most, that images pass through


@checked
class GpsimdEngine(Engine):
    """The programmable engine: `k.gpsimd`."""

    queue = Queue.GPSIMD

    def __init__(self, kernel: Builder):
        super().__init__(kernel)
        self._lanes = kernel.cfg.partitions // cores_of(kernel.cfg.partitions)
        self._row_bytes = WORD_BYTES * self._lanes
        self._loaded: dict[int, Placed] = {}
        self._tensors: dict[Placed, HbmView] = {}
        self._tile: Tile | None = None

    def load(self, image: Image | Path | str, cores: Sequence[int] | None = None) -> None:
        """Put an image, or the one in a file, into local memory of these cores, or of all. Nothing happens if it is
        there.

        It comes from HBM piece by piece, by way of a tile of SBUF that all images share.
        """
        self._need_engine()
        one = self._image(image)
        self._load(one, self._cores(cores))

    def run(
        self,
        image: Image | Path | str,
        entry: str | None = None,
        *,
        src: TileView | None = None,
        src1: TileView | None = None,
        dst: TileView | None = None,
        args: tuple[int | HbmView, int | HbmView] = (0, 0),
        cores: Sequence[int] | None = None,
        watchdog_cycles: int = 0,
        touches: Sequence[TileView | HbmView] = (),
    ) -> None:
        """Run an image from `entry` on: a name made by GP_ENTRY, or a symbol; the image's own if not given. It is
        loaded if it is not there.

        The program finds src, src1, dst and `args` (imm1, imm2) in its mailbox; of a view of HBM the address of its
        first byte, for copies that it makes itself. It reads src and src1, reads and writes dst, and such a view if it
        is an output; what else it reads or writes is named by `touches`. `watchdog_cycles`, in GPSIMD cycles: 0 for the
        2^22 of the engine.
        """
        self._need_engine()
        one, chosen = self._image(image), self._cores(cores)
        start = self._entry(one, entry)
        numbers = [0 if isinstance(value, HbmView) else value for value in args]
        for number, value in enumerate(numbers, 1):
            need(0 <= value < 1 << 64, f"argument {number} of {one.path.name} is {value}; it has 64 bits without sign")
        need(
            0 <= watchdog_cycles < 1 << 24,
            f"a watchdog of {watchdog_cycles} GPSIMD cycles has no place; there are 24 bits",
        )
        given = {"src0": src, "src1": src1, "dst": dst}
        operands = {name: view for name, view in given.items() if view is not None}
        for name, view in operands.items():
            self._need_sbuf(view, f"{name} of {one.path.name}")
        places = {f"place{n}": place(value) for n, value in enumerate(args, 1) if isinstance(value, HbmView)}
        touched: list[TileView | HbmView] = [*touches, *(value for value in args if isinstance(value, HbmView))]
        for view in touched:
            self._need_reach(view, one.path.name)
        writes = [view for view in (dst, *touched) if view is not None and _may_change(view)]
        reads = [*operands.values(), *touched]
        self._start(one, start, chosen, operands, reads, writes, (numbers[0], numbers[1]), watchdog_cycles, places)

    def _start(
        self,
        image: Image,
        entry: int,
        cores: Sequence[int],
        operands: Mapping[str, TileView],
        reads: Sequence[TileView | HbmView],
        writes: Sequence[TileView | HbmView],
        args: tuple[int, int],
        watchdog_cycles: int = 0,
        places: Mapping[str, Place] | None = None,
    ) -> None:
        """A GP_RUN behind the GP_LOAD that it needs, with views as patterns."""
        fields: dict[str, Any] = {name: self._k.free_pattern(view, name) for name, view in operands.items()}
        fields |= places or {}
        self._load(image, cores)
        self._k.issue(
            self.queue,
            Opcode.GP_RUN,
            accesses=(*(access(view, False) for view in reads), *(access(view, True) for view in writes)),
            source=caller(),
            imm0=RUN.pack(entry=entry, cores=_mask(cores), watchdog=watchdog_cycles),
            imm1=args[0],
            imm2=args[1],
            image=image,
            **fields,
        )

    def store(self, dst: TileView, offset: int, *, core: int = 0) -> None:
        """dst = local memory of a core from byte `offset` on: uint32 on as many partitions as the core has lanes;
        element c of the p-th is word c * lanes + p."""
        self._need_engine()
        (chosen,) = self._cores((core,))
        self._need_sbuf(dst, "the destination of local memory")
        need(
            dst.partitions == self._lanes and dst.dtype == "uint32",
            f"local memory is stored as uint32 on {self._lanes} partitions, not as {dst.dtype} on {dst.partitions}",
        )
        size, local = self._row_bytes * dst.elements, self._k.cfg.gpsimd.local_bytes
        need(
            offset >= 0 and offset % self._row_bytes == 0,
            f"local memory is stored from a multiple of {self._row_bytes} bytes on, not from {offset}",
        )
        need(
            offset + size <= local,
            f"{size} bytes of local memory from {offset} on end behind gpsimd.local_bytes = {local}",
        )
        self._k.issue(
            self.queue,
            Opcode.GP_STORE,
            accesses=(access(dst, True),),
            source=caller(),
            dst=self._k.pattern(dst, "the destination"),
            imm0=LOAD.pack(offset=offset, cores=1 << chosen),
        )

    def _load(self, image: Image, cores: Sequence[int]) -> None:
        place = placed(image, self._lanes)
        if all(self._loaded.get(core) == place for core in cores):
            return
        k = self._k
        if place not in self._tensors:
            bits = place.by_lane(self._lanes)
            self._tensors[place] = k.hbm(f"gpsimd image {len(self._tensors)}", bits.shape, "uint32", bits)
        source = self._tensors[place]
        if self._tile is None:
            share = k.cfg.sbuf.partition_bytes // _TILE_SHARE // WORD_BYTES
            columns = min(k.cfg.gpsimd.local_bytes // self._row_bytes, share)
            self._tile = k.sbuf("gpsimd image", partitions=self._lanes, columns=columns, dtype="uint32")
        total, piece = source.shape[1], self._tile.columns
        for first in range(0, total, piece):
            last = min(first + piece, total)
            view = self._tile[:, : last - first]
            k.dma(view, source[:, first:last])
            k.issue(
                self.queue,
                Opcode.GP_LOAD,
                accesses=(access(view, False),),
                source=caller(),
                src0=k.pattern(view, "an image"),
                imm0=LOAD.pack(offset=place.offset + first * self._row_bytes, cores=_mask(cores)),
                imm1=place.tohost,
            )
        self._loaded |= dict.fromkeys(cores, place)

    @at_once()
    def keeps(self) -> tuple[Any, ...]:
        """The images in its cores."""
        return tuple(self._loaded.items())

    @at_once()
    def forgets(self, before: Sequence[tuple[Any, ...]]) -> None:
        """Images are loaded anew."""
        self._loaded.clear()

    def _image(self, image: Image | Path | str) -> Image:
        """The image, if the cores run it. KernelError."""
        try:
            one = image if isinstance(image, Image) else read_image(Path(image))
            need_fit(one, core_of(self._k.cfg))
        except FirmwareError as error:
            raise KernelError(str(error)) from None
        vectors = [name for name, function in one.functions.items() if function.vector_instructions]
        named = f"{', '.join(vectors[:3])}{', ...' if vectors[3:] else ''}"
        need(
            not vectors or self._k.cfg.gpsimd.vectors,
            f"{one.path} has vector instructions in {named}, and cores of {self._k.cfg.name} have no vectors; "
            "the setting gpsimd.vectors=true gives them these",
        )
        return one

    def _entry(self, image: Image, name: str | None) -> int:
        if name is None:
            return image.entry
        start = image.code_at(name)
        if start is None:
            there = ", ".join(image.entries) or "none"
            raise KernelError(
                f"{image.path}: there is no entry {name!r}; GP_ENTRY has made {there}, and no other symbol of code is "
                f"called so"
            )
        return start

    def _cores(self, cores: Sequence[int] | None) -> tuple[int, ...]:
        count = cores_of(self._k.cfg.partitions)
        if cores is None:
            return tuple(range(count))
        need(len(cores) > 0, "a program runs on at least one core of the GPSIMD engine; none is named")
        for core in cores:
            need(
                0 <= core < count,
                f"there is no core {core} in the GPSIMD engine of {self._k.cfg.name}, which has {count}, from 0",
            )
        return tuple(sorted(set(cores)))

    def _need_engine(self) -> None:
        need(
            self._k.cfg.gpsimd.enabled,
            f"configuration {self._k.cfg.name} has no programmable engine: gpsimd.enabled is false",
        )

    def _need_reach(self, view: TileView | HbmView, program: str) -> None:
        """That a program may load and store there, or copy."""
        if not isinstance(view, HbmView):
            self._need_sbuf(view, f"what {program} touches")
            return
        need(
            view.core == self._k.core,
            f"{program} is given tensor {view.tensor.name} of core {core_place(view.core)}; a program gets those of "
            f"its own, core {core_place(self._k.core)}",
        )
        self._k.add_tensor(view.tensor)

    @staticmethod
    def _need_sbuf(view: TileView, what: str) -> None:
        need(
            view.tile.space == Space.SBUF,
            f"{what} is {view.tile.name} in {view.tile.space.name}; GPSIMD cores reach SBUF only",
        )


def _may_change(view: TileView | HbmView) -> bool:
    """Inputs of a kernel stay as they are."""
    return not isinstance(view, HbmView) or not view.tensor.input


def _mask(cores: Sequence[int]) -> int:
    return sum(1 << core for core in cores)
