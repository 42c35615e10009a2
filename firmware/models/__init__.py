"""Models by the sizes of one of their layers: tables (*.toml, each with its source), and the operations of a layer."""
