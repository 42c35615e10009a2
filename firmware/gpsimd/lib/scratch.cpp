// What all operators have together: memory that they use in turn, which needs no value before; the barrier.
#include "columns.h"

alignas(64) GP_KEEP uint32_t gp::scratch[gp::SCRATCH_WORDS];

void gp::meet() { gp_barrier(); }
