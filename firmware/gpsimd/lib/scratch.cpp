// Memory that operators use in turn, which needs no value before.
#include "columns.h"

alignas(64) GP_KEEP uint32_t gp::scratch[gp::SCRATCH_WORDS];
