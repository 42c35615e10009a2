"""All units whose toggles make up the energy of a core's run."""

from rtl.contract.config import Config
from sim.energy.anchor_events import anchor_units
from sim.energy.core.scalar_events import scalar_units
from sim.energy.core.tensor_events import tensor_units
from sim.energy.core.vector_events import vector_units
from sim.energy.events import Unit

__all__ = ["units_of_core"]


def units_of_core(cfg: Config) -> tuple[Unit, ...]:
    """Of a configuration, what is quick to make first."""
    return (*anchor_units(), *tensor_units(cfg), *scalar_units(cfg), *vector_units(cfg))
