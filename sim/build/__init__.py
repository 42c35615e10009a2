"""From a top and a configuration to a model: Verilog, Verilator, the C++ compiler; each built once for each content.

`model` is the way in; `tops` what can be built, `component` makes it, `order` names it by all that it depends on;
`sources`, `record` and `objects` why nothing is built twice; `compile`, `one_file` and `step` the tools; `emitting`,
`lint` and `waivers` Verilog without a model; `children` ends the programs that tools start.
"""

from sim.build.component import has_option, make_component
from sim.build.model import Built, build

__all__ = ["Built", "build", "has_option", "make_component"]
