"""What it is: the hardware, described in Amaranth. Imports nothing of the other rooms."""
