"""The vector unit of a GPSIMD core: Zve32x, a register of which has 32 bits a lane."""
