"""What can be run, a folder each with two files that are asked: `configs` (what its configurations are) and `system`
(parameters, build, run, report, passed). A folder that has them takes part; no list names it.

`configurations` and `registry` ask the folders, `system` is what they answer; `weights` is shared by link and switch.
"""
