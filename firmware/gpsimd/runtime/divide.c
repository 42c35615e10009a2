/* 64-bit division. The compiler brings its own, with 700 kB of debug information in every image.
 *
 * By 0 the quotient is all ones and the remainder the dividend, as the 32-bit instructions of the core have it.
 */
#include <stdint.h>

static uint64_t divide(uint64_t n, uint64_t d, uint64_t *remainder) {
    if ((n | d) >> 32 == 0) {
        uint32_t a = (uint32_t)n, b = (uint32_t)d;
        if (b) {
            *remainder = a % b;
            return a / b;
        }
    }
    if (d == 0) {
        *remainder = n;
        return UINT64_MAX;
    }
    uint64_t quotient = 0, bit = 1;
    while (d < n && !(d >> 63)) d <<= 1, bit <<= 1;
    for (; bit; bit >>= 1, d >>= 1)
        if (n >= d) n -= d, quotient |= bit;
    *remainder = n;
    return quotient;
}

static uint64_t magnitude(int64_t x) { return x < 0 ? -(uint64_t)x : (uint64_t)x; }

uint64_t __udivdi3(uint64_t n, uint64_t d) {
    uint64_t remainder;
    return divide(n, d, &remainder);
}

uint64_t __umoddi3(uint64_t n, uint64_t d) {
    uint64_t remainder;
    divide(n, d, &remainder);
    return remainder;
}

uint64_t __udivmoddi4(uint64_t n, uint64_t d, uint64_t *remainder) {
    uint64_t rest, quotient = divide(n, d, &rest);
    if (remainder) *remainder = rest;
    return quotient;
}

int64_t __divdi3(int64_t n, int64_t d) {
    if (d == 0) return -1;
    uint64_t remainder, quotient = divide(magnitude(n), magnitude(d), &remainder);
    return (int64_t)((n < 0) != (d < 0) ? -quotient : quotient);
}

int64_t __moddi3(int64_t n, int64_t d) {
    uint64_t remainder;
    divide(magnitude(n), magnitude(d), &remainder);
    return (int64_t)(n < 0 ? -remainder : remainder);
}
