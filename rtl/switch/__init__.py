"""A switch of links: inputs with shared buffers, scheduler, crossbar, outputs, answers to what nobody may have
(docs/switch.md). `switch.py` connects all of it."""
