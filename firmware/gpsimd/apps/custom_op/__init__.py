"""An operator of one's own, from C++ to a kernel (docs/firmware.md): clip.cpp, and what a kernel says."""
