"""Workload `ping_pong`: two cores that write some bytes to each other's SBUF with a signal, in turn."""

import numpy as np

from firmware.cores.ensemble import Ensemble, Mark, numbered
from firmware.kernel import Kernel
from firmware.views import KernelError
from rtl.contract.config import Config
from rtl.contract.isa import Queue

__all__ = ["ping_pong"]

CLASS = 1


def ping_pong(cfg: Config, words: np.ndarray, rounds: int) -> Ensemble:
    """Programs for the cores with endpoint numbers 0 and 1: `rounds` times `words` (uint32, a row of SBUF) there and
    back, each time to another place: one to the same place would wait for the one before.

    Output: `got` of both cores, all that came. Marks: `back`, what the first core has waited for in each round. Errors:
    KernelError.
    """
    if rounds < 1 or words.ndim != 1 or not len(words):
        raise KernelError(f"ping_pong needs a round and a word at least, not {rounds} and {words.size}")
    kernels = [Kernel(cfg, f"end{n}", numbered(cfg, n)) for n in range(2)]
    size = len(words)
    told = [k.semaphore("told") for k in kernels]
    own = [k.sbuf("own", partitions=1, columns=size, dtype="uint32") for k in kernels]
    come = [k.sbuf("come", partitions=1, columns=rounds * size, dtype="uint32") for k in kernels]
    back: list[Mark] = []
    for n, k in enumerate(kernels):
        given = k.hbm("given", (1, size), "uint32", words.reshape(1, size))
        got = k.hbm("got", (1, rounds * size), "uint32")
        k.dma(own[n][:, :], given[:, :])
        for turn in range(rounds):
            here, there = (come[m][:, turn * size : (turn + 1) * size] for m in (n, 1 - n))
            for step in ("send", "wait") if n == 0 else ("wait", "send"):
                if step == "send":
                    k.dma(there, own[n][:, :], class_=CLASS, ring=0, queue=Queue.SYNC, signal=told[1 - n])
                else:
                    k.wait(Queue.SYNC, told[n], turn + 1, here)
                    back += [Mark(k.core, Queue.SYNC, k.items(Queue.SYNC) - 1)] if n == 0 else []
        k.dma(got[:, :], come[n][:, :])
    return Ensemble(
        programs=tuple(k.program() for k in kernels),
        truth={(k.core, "got"): np.tile(words, rounds).reshape(1, -1) for k in kernels},
        marks={"back": tuple(back)},
    )
