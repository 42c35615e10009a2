"""How large a design is: gate equivalents, registers, RAM, levels of logic, from Yosys (docs/area.md)."""
