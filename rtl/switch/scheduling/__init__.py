"""Who sends to whom: matching, turns, classes, patience (docs/switch-scheduler.md)."""
