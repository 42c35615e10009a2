"""A compiled program on the scalar core, in lock step with the golden hart; no stalls, so its cycles are the core's.

Run by tests/system/test_gpsimd_scalar.py, which needs a compiler: PLEXUS_IMAGE is a file of what the RAM holds. The
device is a mailbox: PUT is printed, DONE or TRAP ends the run. Leaves image.json.
"""

import json
import os
from pathlib import Path

import cocotb
import numpy as np

from rtl.contract.gpsimd import Mailbox
from verif.benches.gpsimd.scalar_driver import ScalarDriver

_MOST = 400_000


class ImageDriver(ScalarDriver):
    """The mailbox of a core that is alone. `printed`: so far; `ends`: place and value of the store that ended it."""

    printed = ""
    ends: tuple[int, int] | None = None

    def store_word(self, place: int, value: int) -> None:
        if place == Mailbox.PUT:
            self.printed += chr(value & 255)
        if place in (Mailbox.DONE, Mailbox.TRAP):
            self.ends, self.done = (place, value), True

    def device_word(self, place: int) -> int:
        return {Mailbox.CORES: 1, Mailbox.LANES: 16}.get(place, 0)


@cocotb.test()
async def runs_image(dut) -> None:
    ram = bytearray(Path(os.environ["PLEXUS_IMAGE"]).read_bytes())
    driver = ImageDriver(dut, np.random.default_rng(1), ram, 0, 0)
    await driver.start()
    await driver.run(_MOST, patched=True)
    assert driver.ends, f"the program has not ended after {driver.retired} instructions"
    told = {"printed": driver.printed, "ends": driver.ends, "instructions": driver.retired}
    (driver.manifest.folder / "image.json").write_text(json.dumps(told))
