"""An image whose queues issue the same instructions by registers, operations and branches."""

from dataclasses import replace

import numpy as np

from firmware.image import Image, Segment
from rtl.contract.isa import INSTRUCTION_BYTES
from verif.checks.sequence_programs import Data, scrambled
from verif.golden.lines import words

__all__ = ["scrambled_image"]


def scrambled_image(image: Image, rng: np.random.Generator) -> Image:
    """The words of every queue scrambled and put behind all else in HBM. The same instructions are issued."""
    at, queues, segments = image.hbm_bytes, dict(image.queues), list(image.segments)
    hbm = image.memory()
    for queue, place in image.queues.items():
        at = -(-at // INSTRUCTION_BYTES) * INSTRUCTION_BYTES
        data = Data(at // 4)
        program = scrambled(rng, words(hbm, *place), data)
        segments.append(Segment(at, np.frombuffer(data.bytes(), np.uint8)))
        at = -(-(at + len(data.bytes())) // INSTRUCTION_BYTES) * INSTRUCTION_BYTES
        code = b"".join(word.to_bytes(INSTRUCTION_BYTES, "little") for word in program)
        segments.append(Segment(at, np.frombuffer(code, np.uint8)))
        queues[queue] = at, len(program)
        at += len(code)
    return replace(image, queues=queues, segments=tuple(segments), hbm_bytes=at)
