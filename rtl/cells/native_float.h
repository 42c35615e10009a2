// Floating point of the host as the native models need it: round to nearest even, gradual underflow.
#pragma once
#include <cstdint>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace plexus {

constexpr uint32_t CANONICAL_NAN = 0x7fc00000;

#if defined(__x86_64__)
constexpr unsigned DEFAULT_STATE = 0x1f80;  // nearest, no flushing, all exceptions masked
constexpr unsigned FLUSHING = 0x8040;
constexpr unsigned SUBNORMAL_SEEN = 0x0012;  // operand (bit 1) or result (bit 4)

// A library in the same process may have set flushing: set what we need, and put theirs back.
struct FloatState {
    unsigned saved = _mm_getcsr();
    explicit FloatState(unsigned wanted) { _mm_setcsr(wanted); }
    ~FloatState() { _mm_setcsr(saved); }
    bool met_subnormal() const { return _mm_getcsr() & SUBNORMAL_SEEN; }
};
#else
constexpr unsigned DEFAULT_STATE = 0;
constexpr unsigned FLUSHING = 0;

struct FloatState {
    explicit FloatState(unsigned) {}
    bool met_subnormal() const { return false; }
};
#endif

inline bool is_nan(uint32_t bits) { return (bits & 0x7fffffff) > 0x7f800000; }

}  // namespace plexus
