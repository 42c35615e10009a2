// Codes at the ports of the array to numbers of the host, exact.
//
// Operands (kinds ONE, HIGH, LOW) are floats of at most 12 significant bits; elements of dot products are doubles,
// already times the scale of their block: a power of two or an E4M3FN number, so that products and sums stay exact.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace plexus {

// rtl.contract.formats; every other dtype code of an operand means BF16, of an element E4M3FN.
enum Dtype { FP16_CODE = 2, TF32_CODE = 3, E4M3FN_CODE = 4, E4M3_CODE = 5, E5M2_CODE = 6 };

// Bits 6:4 of a mode; rtl/contract/kinds.py. Bits 9:7: a pattern of sparsity.
enum Kind { ONE, PAIR, QUAD, QUAD_E4M3, HIGH, LOW, SPARSE, RAW };

constexpr int ELEMENTS = 4;

inline Kind kind_of(uint32_t mode) { return static_cast<Kind>(mode >> 4 & 7); }
inline uint32_t dtype_of(uint32_t mode) { return mode & 15; }
inline bool is_dot(Kind kind) { return kind >= PAIR && kind <= QUAD_E4M3; }

inline float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

inline float decode_bf16(uint32_t code) { return float_of(code << 16); }

inline float decode_fp16(uint32_t code) {
    const uint32_t sign = (code & 0x8000) << 16, rest = code & 0x7fff;
    if (rest < 0x0400) {  // zero and subnormal
        const float value = static_cast<float>(rest) * 0x1p-24f;
        return sign ? -value : value;
    }
    return float_of(sign | ((rest << 13) + (rest >= 0x7c00 ? (255u - 31) << 23 : (127u - 15) << 23)));
}

// Rounded to the 10 bits of fraction of TF32, as the format has them: a subnormal at its fixed place.
inline float decode_tf32(uint32_t bits) {
    if ((bits & 0x7f800000) != 0x7f800000) bits = (bits + 0xfff + (bits >> 13 & 1)) & ~0x1fffu;
    return float_of(bits);
}

// x to 12 significant bits, nearest even; beyond FP32 it is infinite.
inline float high_half(float x) {
    if (!std::isfinite(x) || x == 0) return x;
    const double wide = x;  // normalised even if x is subnormal
    uint64_t bits;
    memcpy(&bits, &wide, sizeof bits);
    bits += (1ull << 40) - 1 + (bits >> 41 & 1);
    bits &= ~((1ull << 41) - 1);
    double rounded;
    memcpy(&rounded, &bits, sizeof rounded);
    return std::fabs(rounded) >= 0x1p128 ? std::copysign(std::numeric_limits<float>::infinity(), x)
                                         : static_cast<float>(rounded);
}

inline float low_half(float x) {
    const float high = high_half(x);
    return std::isfinite(high) ? x - high : 0.0f;
}

// Every 8-bit code of E4M3FN, E4M3 and E5M2.
struct Eights {
    double e4m3fn[256], e4m3[256], e5m2[256];
    Eights() {
        const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
        for (int code = 0; code < 256; code++) {
            const double sign = code & 0x80 ? -1 : 1;
            const int wide = code >> 3 & 15, few = code & 7;
            const double value = wide ? std::ldexp(8 + few, wide - 10) : std::ldexp(few, -9);
            e4m3fn[code] = (code & 0x7f) == 0x7f ? nan : sign * value;
            e4m3[code] = wide < 15 ? sign * value : few ? nan : sign * inf;
            e5m2[code] = decode_fp16(static_cast<uint32_t>(code) << 8);
        }
    }
    const double* of(uint32_t dtype) const {
        return dtype == E5M2_CODE ? e5m2 : dtype == E4M3_CODE ? e4m3 : e4m3fn;
    }
};

inline const Eights& eights() {
    static const Eights table;
    return table;
}

// rtl/contract/sparsity.py, by code.
struct Pattern {
    int kept, ratio;
};
constexpr Pattern PATTERNS[8] = {{4, 4}, {4, 3}, {4, 2}, {2, 4}, {2, 2}, {1, 4}, {1, 2}, {4, 4}};

// Which of the sixteen numbers of its aligned four rows a sparse weight meets. A tag beyond its bus goes on in the rows
// after it, and from the last of the four to the first.
inline uint32_t slot_of(int row, uint32_t tag, int pattern) {
    const Pattern& p = PATTERNS[pattern];
    const int number = static_cast<int>(tag), bus = row - row % p.kept;
    return static_cast<uint32_t>((bus + number / p.ratio) % 4 * 4 + number % p.ratio);
}

inline float decode_operand(uint64_t data, Kind kind, uint32_t dtype) {
    const uint32_t low = static_cast<uint32_t>(data);
    if (kind == HIGH) return high_half(float_of(low));
    if (kind == LOW) return low_half(float_of(low));
    switch (dtype) {
        case FP16_CODE: return decode_fp16(low & 0xffff);
        case TF32_CODE: return decode_tf32(low);
        case E4M3FN_CODE:
        case E4M3_CODE:
        case E5M2_CODE: return static_cast<float>(eights().of(dtype)[low & 0xff]);
        default: return decode_bf16(low & 0xffff);
    }
}

// The factor that a scale code stands for; NaN makes NaN of all.
inline double decode_scale(uint32_t code, Kind kind) {
    if (kind == PAIR) return 1;
    if (kind == QUAD_E4M3) return eights().e4m3fn[code & 0xff];
    if ((code & 0xff) == 0xff) return std::numeric_limits<double>::quiet_NaN();
    const uint64_t bits = static_cast<uint64_t>((code & 0xff) + 1023 - 127) << 52;
    double factor;
    memcpy(&factor, &bits, sizeof factor);
    return factor;
}

inline void decode_elements(uint64_t data, double factor, Kind kind, uint32_t dtype, double* out) {
    const double* table = eights().of(dtype);
    const int count = kind == PAIR ? 2 : ELEMENTS;
    for (int k = 0; k < count; k++) out[k] = table[data >> 8 * k & 0xff] * factor;
    for (int k = count; k < ELEMENTS; k++) out[k] = 0;
}

}  // namespace plexus
