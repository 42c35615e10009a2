// Model of a row of FP32 adders for plexus_add_lanes.sv: the host's own addition.
//
// Compile with -O3 -ffp-contract=off -fno-fast-math -std=c++17.
#include "native_float.h"

#include <cstring>

namespace {

enum Fault { NONE, RAW_NAN, FLUSH, NEIGHBOUR, TRUNCATE };

}  // namespace

extern "C" void plexus_add_lanes(int lanes, int fault, const uint32_t* a, const uint32_t* b, uint32_t* out) {
    using namespace plexus;
    unsigned wanted = DEFAULT_STATE;
    if (fault == FLUSH) wanted |= FLUSHING;
    if (fault == TRUNCATE) wanted |= 0x6000;  // round towards zero
    FloatState state(wanted);
    float x[128], y[128], sum[128];
    memcpy(x, a, sizeof(float) * lanes);
    memcpy(y, b, sizeof(float) * lanes);
    for (int i = 0; i < lanes; i++) sum[i] = x[i] + y[i];
    if (fault == NEIGHBOUR) sum[0] = sum[lanes - 1];
    memcpy(out, sum, sizeof(float) * lanes);
    if (fault != RAW_NAN)
        for (int i = 0; i < lanes; i++) out[i] = is_nan(out[i]) ? CANONICAL_NAN : out[i];
    memset(out + lanes, 0, sizeof(uint32_t) * (128 - lanes));
}
