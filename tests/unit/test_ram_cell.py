"""The RAM cell as synthesis sees it."""

import json
import subprocess
from pathlib import Path

import pytest

from rtl.emit.verilog import CELLS
from sim.toolchain import environment


@pytest.mark.parametrize(("width", "depth", "granule"), [(64, 16, 8), (96, 5, 32), (37, 4, 37)])
def test_becomes_one_memory_without_initial_contents(tmp_path: Path, width: int, depth: int, granule: int) -> None:
    parameters = f"-set WIDTH {width} -set DEPTH {depth} -set GRANULE {granule} -set ADDR {(depth - 1).bit_length()}"
    script = f"""
        read_verilog -sv {CELLS / "plexus_ram.sv"}; chparam {parameters} plexus_ram; hierarchy -top plexus_ram
        proc; opt; memory -nomap; opt_clean; check -assert; write_json {tmp_path / "ram.json"}
    """
    subprocess.run(["yosys", "-q", "-p", script], env=environment(), check=True, capture_output=True)
    cells = json.loads((tmp_path / "ram.json").read_text())["modules"]["plexus_ram"]["cells"].values()
    memories = [c for c in cells if c["type"] == "$mem_v2"]
    assert len(memories) == 1
    parameters = memories[0]["parameters"]
    assert (int(parameters["WIDTH"], 2), int(parameters["SIZE"], 2)) == (width, depth)
    assert set(parameters["INIT"]) == {"x"}
    assert (int(parameters["RD_PORTS"], 2), int(parameters["WR_PORTS"], 2)) == (1, 1)
