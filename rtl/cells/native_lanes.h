// As many lanes at a time as the processor's registers hold: what functions of rtl/emit/lane_vectors.py are made of.
//
// A value of up to 32 bits is a w in one lane and a W in LANES of them; of up to 64 bits a d and a D, which takes two
// registers. Bits above a value's width are 0. W and the halves of D are the compiler's own vectors (GCC and Clang), so
// the text is the same for every processor. Wider ones than its registers would be taken apart, number by number.
#pragma once
#include <cstdint>
#include <cstring>
#if defined(__AVX512DQ__)
#include <immintrin.h>
#endif

#ifndef __has_builtin
#define __has_builtin(name) 0
#endif

namespace plexus_lanes {

#if defined(__AVX512DQ__)
constexpr int REGISTER = 64;
#elif defined(__AVX2__)
constexpr int REGISTER = 32;
#else
constexpr int REGISTER = 16;
#endif
constexpr int LANES = REGISTER / 4;  // 16, 8 or 4

typedef unsigned int w;
typedef unsigned long long d;  // as literals ending in ull are
typedef w W __attribute__((vector_size(REGISTER)));
typedef int SW __attribute__((vector_size(REGISTER)));
typedef d H __attribute__((vector_size(REGISTER)));
typedef long long SH __attribute__((vector_size(REGISTER)));
typedef w HW __attribute__((vector_size(REGISTER / 2)));  // the lanes of a half
typedef int SHW __attribute__((vector_size(REGISTER / 2)));

struct D {
    H low, high;
};
struct SD {
    SH low, high;
};
struct Halves {
    HW low, high;
};

#define PX_INLINE static inline __attribute__((always_inline, unused))
#define PX_EACH(op)                                                                                  \
    PX_INLINE D operator op(D a, D b) { return {a.low op b.low, a.high op b.high}; }                 \
    PX_INLINE D operator op(D a, d b) { return {a.low op b, a.high op b}; }
#define PX_COMPARE(type, scalar, op)                                                                 \
    PX_INLINE SD operator op(type a, type b) { return {a.low op b.low, a.high op b.high}; }          \
    PX_INLINE SD operator op(type a, scalar b) { return {a.low op b, a.high op b}; }
PX_EACH(&)
PX_EACH(|)
PX_EACH(^)
PX_EACH(+)
PX_EACH(-)
PX_EACH(*)
PX_COMPARE(D, d, ==)
PX_COMPARE(D, d, !=)
PX_COMPARE(D, d, <)
PX_COMPARE(D, d, <=)
PX_COMPARE(D, d, >)
PX_COMPARE(D, d, >=)
PX_COMPARE(SD, long long, <)
PX_COMPARE(SD, long long, <=)
PX_COMPARE(SD, long long, >)
PX_COMPARE(SD, long long, >=)
PX_INLINE D operator~(D a) { return {~a.low, ~a.high}; }
PX_INLINE D operator-(D a) { return {-a.low, -a.high}; }
PX_INLINE D operator<<(D a, int by) { return {a.low << by, a.high << by}; }
PX_INLINE D operator>>(D a, int by) { return {a.low >> by, a.high >> by}; }

#if __has_builtin(__builtin_shufflevector)
#if defined(__AVX512DQ__)
#define PX_LOW 0, 1, 2, 3, 4, 5, 6, 7
#define PX_HIGH 8, 9, 10, 11, 12, 13, 14, 15
#elif defined(__AVX2__)
#define PX_LOW 0, 1, 2, 3
#define PX_HIGH 4, 5, 6, 7
#else
#define PX_LOW 0, 1
#define PX_HIGH 2, 3
#endif
PX_INLINE Halves halves(W a) {
    return {__builtin_shufflevector(a, a, PX_LOW), __builtin_shufflevector(a, a, PX_HIGH)};
}
PX_INLINE W whole(HW low, HW high) { return __builtin_shufflevector(low, high, PX_LOW, PX_HIGH); }
#else  // by way of memory, where what is written in two halves and read in one waits
PX_INLINE Halves halves(W a) {
    Halves two;
    std::memcpy(&two, &a, sizeof two);
    return two;
}
PX_INLINE W whole(HW low, HW high) {
    const Halves two = {low, high};
    W a;
    std::memcpy(&a, &two, sizeof a);
    return a;
}
#endif

PX_INLINE w narrow(d a) { return static_cast<w>(a); }
PX_INLINE W narrow(D a) { return whole(__builtin_convertvector(a.low, HW), __builtin_convertvector(a.high, HW)); }
PX_INLINE d widen(w a) { return a; }
PX_INLINE D widen(W a) {
    const Halves two = halves(a);
    return {__builtin_convertvector(two.low, H), __builtin_convertvector(two.high, H)};
}
PX_INLINE W all(w a) { return W{} + a; }
PX_INLINE D all(d a) { return {H{} + a, H{} + a}; }

// 0 or 1 of each lane from the compiler's -1
PX_INLINE w truth(bool a) { return a; }
PX_INLINE W truth(SW a) { return reinterpret_cast<W>(a) & 1u; }
PX_INLINE W truth(SD a) { return narrow(D{reinterpret_cast<H>(a.low), reinterpret_cast<H>(a.high)}) & 1u; }

PX_INLINE int sign(w a) { return static_cast<int>(a); }
PX_INLINE long long sign(d a) { return static_cast<long long>(a); }
PX_INLINE SW sign(W a) { return reinterpret_cast<SW>(a); }
PX_INLINE SD sign(D a) { return {reinterpret_cast<SH>(a.low), reinterpret_cast<SH>(a.high)}; }

PX_INLINE w select(w s, w one, w zero) { return s ? one : zero; }
PX_INLINE d select(w s, d one, d zero) { return s ? one : zero; }
PX_INLINE W select(W s, W one, W zero) { return s != 0u ? one : zero; }
PX_INLINE D select(W s, D one, D zero) {
#if defined(__AVX512DQ__)  // a third fewer instructions than by way of two wide comparisons
    const __mmask16 m = _mm512_test_epi32_mask(reinterpret_cast<__m512i>(s), reinterpret_cast<__m512i>(s));
    const auto half = [](unsigned m, H one, H zero) {
        const auto blend = _mm512_mask_blend_epi64(m, reinterpret_cast<__m512i>(zero), reinterpret_cast<__m512i>(one));
        return reinterpret_cast<H>(blend);
    };
    return {half(m & 255, one.low, zero.low), half(m >> 8, one.high, zero.high)};
#else
    const D wide = widen(s);
    return {wide.low != 0ull ? one.low : zero.low, wide.high != 0ull ? one.high : zero.high};
#endif
}

// by any number of places: 32 or 64 and more give 0
PX_INLINE w shift_left(w a, w by) { return by < 32 ? a << by : 0; }
PX_INLINE d shift_left(d a, d by) { return by < 64 ? a << by : 0; }
PX_INLINE W shift_left(W a, W by) { return by < 32u ? a << (by & 31u) : W{}; }
PX_INLINE H shift_left(H a, H by) { return by < 64ull ? a << (by & 63ull) : H{}; }
PX_INLINE D shift_left(D a, D by) { return {shift_left(a.low, by.low), shift_left(a.high, by.high)}; }
PX_INLINE w shift_right(w a, w by) { return by < 32 ? a >> by : 0; }
PX_INLINE d shift_right(d a, d by) { return by < 64 ? a >> by : 0; }
PX_INLINE W shift_right(W a, W by) { return by < 32u ? a >> (by & 31u) : W{}; }
PX_INLINE H shift_right(H a, H by) { return by < 64ull ? a >> (by & 63ull) : H{}; }
PX_INLINE D shift_right(D a, D by) { return {shift_right(a.low, by.low), shift_right(a.high, by.high)}; }

// the upper 64 of 128 bits of what is moved up by less than 128 places
PX_INLINE d shift_left_high(d a, d by) { return by < 64 ? shift_right(a, 64 - by) : a << (by & 63); }
PX_INLINE H shift_left_high(H a, H by) { return by < 64ull ? shift_right(a, 64ull - by) : a << (by & 63ull); }
PX_INLINE D shift_left_high(D a, D by) { return {shift_left_high(a.low, by.low), shift_left_high(a.high, by.high)}; }

PX_INLINE w parity(w a) { return __builtin_parity(a); }
PX_INLINE w parity(d a) { return __builtin_parityll(a); }
PX_INLINE W parity(W a) {
    a ^= a >> 16;
    a ^= a >> 8;
    a ^= a >> 4;
    a ^= a >> 2;
    return (a ^ a >> 1) & 1u;
}
PX_INLINE W parity(D a) { return parity(narrow(a ^ a >> 32)); }

// Lane by lane: the numbers of a W or a D in memory.
PX_INLINE void spread(W a, w* to) { std::memcpy(to, &a, sizeof a); }
PX_INLINE void spread(D a, d* to) { std::memcpy(to, &a, sizeof a); }
PX_INLINE void gather(W* a, const w* from) { std::memcpy(a, from, sizeof *a); }
PX_INLINE void gather(D* a, const d* from) { std::memcpy(a, from, sizeof *a); }
template <class T> struct Number;
template <> struct Number<W> {
    typedef w type;
};
template <> struct Number<D> {
    typedef d type;
};

PX_INLINE w look_up(const w* table, w at) { return table[at]; }
PX_INLINE d look_up(const d* table, w at) { return table[at]; }
template <class N, class T> PX_INLINE T looked_up(const N* table, W at) {
    w places[LANES];
    N found[LANES];
    spread(at, places);
    for (int k = 0; k < LANES; ++k) found[k] = table[places[k]];
    T out;
    gather(&out, found);
    return out;
}
PX_INLINE W look_up(const w* table, W at) { return looked_up<w, W>(table, at); }
PX_INLINE D look_up(const d* table, W at) { return looked_up<d, D>(table, at); }

// Bits [low, low + bits) of a packed number; bits <= 64.
PX_INLINE d field(const w* from, unsigned low, unsigned bits) {
    const unsigned at = low / 32, shift = low % 32;
    d value = from[at] >> shift;
    for (unsigned have = 32 - shift, n = 1; have < bits; have += 32, ++n) value |= static_cast<d>(from[at + n]) << have;
    return bits < 64 ? value & ((1ull << bits) - 1) : value;
}

// The lanes of block b of a packed port of STRIDE bits a lane: bits [LOW, LOW + BITS) of each.
template <unsigned STRIDE, unsigned LOW, unsigned BITS, class T> PX_INLINE T lanes_of(const w* port, int b) {
    typedef typename Number<T>::type N;
    constexpr unsigned size = 8 * sizeof(N);
    N found[LANES];
    const unsigned first = b * LANES;
    if (STRIDE == BITS && BITS == size) {
        std::memcpy(found, port + first * STRIDE / 32, sizeof found);
    } else if (STRIDE == 1) {
        const w mine = port[first / 32] >> first % 32;
        for (int k = 0; k < LANES; ++k) found[k] = mine >> k & 1;
    } else if (STRIDE % 32 == 0 && LOW % 32 == 0 && BITS == size) {
        for (int k = 0; k < LANES; ++k) std::memcpy(&found[k], port + ((first + k) * STRIDE + LOW) / 32, sizeof(N));
    } else {
        for (int k = 0; k < LANES; ++k) found[k] = static_cast<N>(field(port, (first + k) * STRIDE + LOW, BITS));
    }
    T out;
    gather(&out, found);
    return out;
}

// The same the other way, for ports of at most 64 bits a lane; of other widths than 32 and 64 into zeros.
template <unsigned BITS, class T> PX_INLINE void put_lanes(w* port, int b, T value) {
    typedef typename Number<T>::type N;
    N given[LANES];
    spread(value, given);
    if (BITS == 8 * sizeof(N)) {
        std::memcpy(port + b * LANES * BITS / 32, given, sizeof given);
        return;
    }
    for (int k = 0; k < LANES; ++k) {
        const unsigned low = (b * LANES + k) * BITS;
        const d bits = given[k];
        port[low / 32] |= static_cast<w>(bits << low % 32);
        for (unsigned have = 32 - low % 32, n = 1; have < BITS; have += 32, ++n)
            port[low / 32 + n] |= static_cast<w>(bits >> have);
    }
}
}  // namespace plexus_lanes
