"""Programs that make firmware compiles: examples for users, none of them part of the library."""
