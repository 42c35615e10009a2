"""A core's packets at a port: two streams of beats by its clock (docs/endpoint.md)."""
