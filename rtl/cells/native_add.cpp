// Model of a row of FP32 adders for plexus_add_lanes.sv: the host's own addition.
//
// Compile with -O3 -ffp-contract=off -fno-fast-math -std=c++17.
#include "native_float.h"

#include <cstring>

namespace {

enum Fault { NONE, RAW_NAN, FLUSH, NEIGHBOUR, TRUNCATE, ONE_LANE, AWAY, LATE_WORD };

// rtl.contract.isa.Rounding
enum Rounding { FP32, NEAREST, STOCHASTIC };

// The end of the hash of rtl/numeric/fp32/round_bits.py: 16 random bits of a lane.
uint32_t random_bits(uint32_t word, uint32_t lane) {
    uint32_t h = word + lane;
    for (int round = 0; round < 2; round++) {
        h += h << 10;
        h ^= h >> 6;
        h += h << 3;
        h ^= h >> 11;
        h += h << 15;
    }
    return h >> 16;
}

// FP32 codes to BF16 in their upper half; a carry beyond the exponent ends at infinity, which has no fraction to carry.
void round_to_bf16(uint32_t* codes, int lanes, int rounding, uint32_t word, int fault) {
    for (int i = 0; i < lanes; i++) {
        const uint32_t even = fault == AWAY ? 1 : codes[i] >> 16 & 1;
        const uint32_t more = rounding == NEAREST ? 0x7fff + even : random_bits(word, fault == ONE_LANE ? 0 : i);
        codes[i] = (codes[i] + more) & 0xffff0000u;
    }
}

}  // namespace

extern "C" void plexus_add_lanes(int lanes, int fault, int rounding, int word, const uint32_t* a, const uint32_t* b,
                                 uint32_t* out) {
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
    static uint32_t before = 0;  // of a planted fault only
    if (rounding != FP32) round_to_bf16(out, lanes, rounding, fault == LATE_WORD ? before : word, fault);
    if (fault == LATE_WORD) before = word;
    memset(out + lanes, 0, sizeof(uint32_t) * (128 - lanes));
}
