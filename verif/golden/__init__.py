"""Golden models in NumPy: bit for bit what the hardware must do. They share numbers with it (rtl.contract), no code."""
