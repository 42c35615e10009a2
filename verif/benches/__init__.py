"""cocotb benches, one for each unit, in the folders of rtl/."""
