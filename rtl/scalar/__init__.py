"""The scalar engine: functions by tables, scale and bias, one lane a partition (docs/scalar-engine.md)."""
