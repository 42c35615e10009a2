"""The DMA at a link: requests of other cores, pieces of rows that go there (docs/endpoint.md, docs/packets.md)."""
