"""Of which units a whole design consists, for its flip-flops and RAMs; nothing is synthesised."""

from collections.abc import Sequence

from rtl.contract.any_config import AnyConfig
from sim.area.design import Use, elaborated, keep_uses, kept_uses, place_of, uses_of
from sim.area.synthesis import shelf
from sim.build.emitting import form_options
from sim.build.tops import top
from sim.progress import Progress

__all__ = ["design_of"]


def design_of(name: str, cfg: AnyConfig, step: Progress) -> Sequence[Use]:
    """Units of a top, gates all the way down. It is elaborated once for its sources and configuration, as
    `plexus area` does."""
    chosen, options = top(name), form_options(name, None)
    place = place_of(shelf(), chosen, cfg, options)
    uses = kept_uses(place)
    if uses is None:
        step.stage(f"elaborate the {name.replace('_', ' ')}")
        uses = uses_of(elaborated(chosen, cfg, options), chosen.name)
        keep_uses(place, uses)
    return uses
