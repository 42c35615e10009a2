"""Of a link or a switch: flip-flops, and the rows of the buffers that a flit goes through."""

from collections.abc import Mapping

from rtl.contract.link_config import LinkConfig
from rtl.contract.switch_config import SwitchConfig
from rtl.link.framing.framing import rows_of as store_rows
from rtl.link.framing.placing import slots_of
from sim.energy.design import design_of
from sim.energy.macro_row import RowOf
from sim.progress import Progress

__all__ = ["TOPS", "flip_flops_of", "rows_of"]

TOPS: Mapping[type, str] = {LinkConfig: "port_lanes", SwitchConfig: "switch"}
"""What one device is: an end of a link, a whole switch."""


def flip_flops_of(cfg: LinkConfig | SwitchConfig, step: Progress) -> dict[str, dict[str, int]]:
    """As core.registers.registers_of, of the link clock, the only one."""
    uses = design_of(TOPS[type(cfg)], cfg, step)
    delays = sum(use.delay_bits * use.count for use in uses)
    bits = sum(use.registers_bits * use.count for use in uses)
    return {"link": {"flip_flops": bits + delays, "delay_bits": delays}}


def rows_of(cfg: LinkConfig | SwitchConfig) -> dict[str, list[RowOf]]:
    """A row is a beat, in a switch with its parity; `send store`: of both banks in turn."""
    link = cfg.link if isinstance(cfg, SwitchConfig) else cfg
    beat = 8 * link.beat_bytes
    decoder = {"decoder buffer": [RowOf(beat, 2 * link.beats * link.beat_bytes)]}
    retry_beats = link.beats << (link.window_flits - 1).bit_length()
    if isinstance(cfg, SwitchConfig):
        checked = beat + link.beat_bytes
        pool_beats = link.beats << (link.pool_flits - 1).bit_length()
        return decoder | {
            "receive pool": [RowOf(checked, pool_beats * checked // 8)],
            "retry buffer": [RowOf(checked, retry_beats * checked // 8)],
        }
    return decoder | {
        "send store": [RowOf(beat, _store_bytes(link))],
        "retry buffer": [RowOf(beat, retry_beats * link.beat_bytes)],
        "receive pool": [RowOf(beat, link.beats * link.pool_flits * link.beat_bytes)],
    }


def _store_bytes(link: LinkConfig) -> int:
    """Of one of the two banks."""
    rows, slots = store_rows(link), slots_of(link)
    depth = link.queues << ((slots - 1).bit_length() + (rows.count - 1).bit_length() - 1)
    return depth * rows.bits // 8
