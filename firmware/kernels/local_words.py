"""Words of local memory of a GPSIMD core to HBM, wherever they begin and end."""

from firmware.kernel import HbmView, Kernel, KernelError
from rtl.contract.gpsimd import cores

__all__ = ["local_words"]

_WORD_BYTES = 4
_TILE_SHARE = 16  # of SBUF, at most, that they pass through


def local_words(k: Kernel, name: str, begin: int, end: int, core: int = 0) -> HbmView:
    """The output `name` in HBM: uint32 from byte `begin` of local memory of a core to before byte `end`.

    GP_STORE takes whole rows, a word a lane, from the place of a row; the words before and behind are not copied.
    """
    local = k.cfg.gpsimd.local_bytes
    if not 0 <= begin < end <= local or begin % _WORD_BYTES or end % _WORD_BYTES:
        raise KernelError(
            f"{name} is bytes {begin} to {end} of local memory; that must be whole words of its {local} bytes"
        )
    lanes = k.cfg.partitions // cores(k.cfg.partitions)
    first, last = begin // _WORD_BYTES, end // _WORD_BYTES  # words
    result = k.hbm(name, (last - first,), "uint32")
    rows = range(first // lanes, -(-last // lanes))
    columns = min(len(rows), k.cfg.sbuf.partition_bytes // _TILE_SHARE // _WORD_BYTES)
    tile = k.sbuf(f"{name} tile", partitions=lanes, columns=columns, dtype="uint32")
    for row in rows[::columns]:
        there = range(row, min(row + columns, rows.stop))
        k.gpsimd.store(tile[:, : len(there)], row * lanes * _WORD_BYTES, core=core)
        whole = range(max(-(-first // lanes), there.start), min(last // lanes, there.stop))
        if len(whole):
            words = result[whole.start * lanes - first : whole.stop * lanes - first]
            view = tile[:, whole.start - row : whole.stop - row]
            k.dma(words.split(0, lanes).permute((1, 0)), view)
        for partly in {first // lanes, last // lanes} & (set(there) - set(whole)):
            low, high = max(first, partly * lanes), min(last, (partly + 1) * lanes)
            view = tile[low % lanes : low % lanes + high - low, partly - row]
            k.dma(result[low - first : high - first].split(0, 1), view)
    return result
