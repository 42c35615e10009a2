"""Flits to words of lanes and back: markers, scrambler, map of lanes, their health (docs/lanes.md)."""
