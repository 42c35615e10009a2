"""Verilog of a top as `plexus emit` writes it: RTL all the way down, unless a C++ model is asked for."""

from collections.abc import Mapping
from typing import Any

from rtl.contract.any_config import AnyConfig
from rtl.emit.verilog import Emitted, emit
from sim.build.component import has_option, make_component
from sim.build.tops import top as find_top
from sim.errors import PlexusError
from sim.toolchain import activate

__all__ = ["FORMS", "emit_top", "form_options"]

FORMS = ("native", "structural")


def form_options(top: str, form: str | None, default: str = "structural") -> dict[str, Any]:
    """The option `form` of a top that has forms, else none.

    Errors: PlexusError for a form that is none, and for any that is asked of a top without.
    """
    if form is not None and form not in FORMS:
        raise PlexusError(f"the array is {' or '.join(FORMS)}, not {form!r}")
    if has_option(find_top(top), "form"):
        return {"form": form or default}
    if form is not None:
        raise PlexusError(f"top {top} has no C++ model in it, so it takes no --array")
    return {}


def emit_top(top: str, cfg: AnyConfig, *, form: str | None = None, options: Mapping[str, Any] | None = None) -> Emitted:
    """The Verilog of `top`; what has a form is structural if `form` does not say native.

    Errors: PlexusError for a form that is none or that the top does not have, and for a wrong option.
    """
    chosen = form_options(top, form) | dict(options or {})
    activate()
    return emit(make_component(find_top(top), cfg, chosen), top, loops=False)
