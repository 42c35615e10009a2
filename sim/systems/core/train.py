"""Runs for a core's model that counts where it goes: `python -m sim.systems.core.train LIBRARY`.

A product and an attention of sizes that nobody asks for, so that no run is measured on the model it was trained for;
what a configuration has no room for is left out.
"""

import json
import sys
from pathlib import Path

from firmware.image import build_image
from firmware.views import KernelError
from firmware.workloads import find_workload
from rtl.contract.config import Config
from sim.build.guided import CONFIG
from sim.errors import PlexusError
from sim.systems.configurations import restored
from sim.systems.core.verilated import VerilatedDevice

__all__ = ["RUNS"]

RUNS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("gemm", ("m=328", "k=264", "n=392")),
    ("attention", ("heads=1", "seq=392", "head=40")),
)
"""Workload and parameters."""
SEED = 9001


def _train(library: Path, cfg: Config) -> int:
    """How many of the runs the configuration has room for."""
    done = 0
    for name, settings in RUNS:
        workload = find_workload(name)
        try:
            image = build_image(workload.build(cfg, workload.parse(settings), SEED))
        except KernelError as error:
            print(f"{name} is left out: {error}")
            continue
        with VerilatedDevice(cfg, library) as device:
            device.load(image)
            end = device.run().end
        if end != "done":
            raise PlexusError(f"the training run {name} ends with {end}")
        done += 1
    return done


def main() -> int:
    """The command. Exit code 0, or 1 if no run was possible."""
    library = Path(sys.argv[1])
    cfg = restored(json.loads((library.parent / CONFIG).read_text()))
    if not isinstance(cfg, Config):
        raise PlexusError("what is trained is a core")
    return 0 if _train(library, cfg) else 1


if __name__ == "__main__":
    sys.exit(main())
