"""Golden model of the programmable engine: cores without time, their mailboxes, and what its instructions do."""
