"""Which units are mutated, and which benches must notice: what the benches declare of themselves (verif/bench.py)."""

from collections.abc import Iterable

from sim.build.component import has_option
from sim.build.tops import top
from verif.collect import Declared, declarations
from verif.launch import configuration
from verif.mutants.own import own_files
from verif.mutants.unit import Unit

__all__ = ["SAMPLE", "UNMEASURED", "units"]

SAMPLE = (
    "begun_units", "clock_gate", "fifo", "halves", "packet_merge", "port_status", "ram_fifo", "round_bits", "unpack",
    "unpack_element",
)  # fmt: skip
"""Small units with short benches: a few mutants of each are part of `make test`."""

UNMEASURED = {
    "ram": "one cell of rtl/cells, which Yosys places as a black box",
    "add_lanes": "compares a C++ model with the adders that fp32_add measures",
    "array_lockstep": "compares a C++ model with the array that array measures",
    "lanes_lockstep": "compares a C++ model with the lanes that vector_engine and scalar_engine measure",
    "codec_lockstep": "compares C++ models with flit_encoder and flit_decoder",
    "lane_pair": "two lane_sender and two lane_receiver, which are measured alone",
    "framing": "a send_path and a receive_path, which are measured alone",
    "tile": "only wires between PEs, which pe measures: no cell of its own",
    "core_pair": "two whole cores, whose units are measured alone",
}
"""Tops of benches that are not mutated, and why."""

WRAPS = {
    "activation": ("rtl/numeric/functions/activation.py",),
    "convert": ("rtl/numeric/formats/from_fp32.py", "rtl/numeric/formats/to_fp32.py"),
    "scalar_core": ("rtl/gpsimd/scalar_core.py",),
    "vector_unit": ("rtl/gpsimd/vector/unit.py",),
}
"""What the tops of these benches wrap, and engines have without the wrapping."""


def units() -> list[Unit]:
    """All that are measured, in the order of their benches: each on one build, with all benches that run on it.

    The build is the one whose declaration says `mutated=True`, else the first that must notice planted faults.
    """
    found = [one for one in declarations() if one.run.top not in UNMEASURED]
    names = dict.fromkeys(one.run.top for one in found)
    files = own_files(names, WRAPS)
    return [_unit(name, found, files[name]) for name in names]


def _unit(name: str, found: Iterable[Declared], files: frozenset[str]) -> Unit:
    own = [one for one in found if one.run.top == name]
    one = max(own, key=lambda o: (o.run.mutated, bool(o.run.wanted)))
    benches = dict.fromkeys(other.bench for other in own if other.build == one.build)
    options = dict(one.run.options)
    if has_option(top(name), "form"):
        options["form"] = "structural"  # Yosys has no view of a C++ cell
    return Unit(name, tuple(benches), configuration(one.run.config), options, files)
