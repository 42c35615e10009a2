// Column sums of dot products: y[b][c] = fold over rows r of RN32(RN32(sum over k of x[b][r][k] * w[r][k][c]) + y).
//
// The sum of four products is exact in double where one side is E4M3: 38 bits, with E5M2 on the other side 52. E5M2
// times E5M2 needs 66. Then the moving side comes in two halves, numbers of at least 1 and the rest (before their
// scale): each half's sum has at most 52 bits and is exact, and both are added with rounding to odd, which rounds to
// FP32 as the exact sum would, for 53 >= 24 + 2. An infinity makes NaN of the half that is zero beside it; there the
// plain sum is taken, which is right whenever it is not finite.
#pragma once
#include "native_codes.h"
#include "native_kernels.h"

namespace plexus {

using Wide = double[ELEMENTS][WIDTH];    // a row of weights
using Halves = double[2 * ELEMENTS];     // a moving row: its elements, or their high halves and then their low ones

// How the four products are summed.
enum DotMode {
    PLAIN,    // the first four numbers of Halves, exact as they are
    SPLIT,    // halves; all numbers are finite
    CAREFUL,  // halves; some are not
};

using DotKernel = void (*)(const Wide* w, const Halves (*x)[WIDTH], const uint8_t* rows, int count, int batch, int cols,
                           float (*y)[WIDTH]);

#define PLEXUS_DOT_ARGUMENTS                                                                                 \
    const Wide *w, const Halves(*x)[WIDTH], const uint8_t *rows, int count, int batch, int cols, float(*y)[WIDTH]

// high + low, rounded to odd: the nearest double away from an even last bit if the sum is not exact.
inline double add_to_odd(double high, double low) {
    const double sum = high + low, back = sum - high, error = (high - (sum - back)) + (low - back);
    uint64_t bits, off;
    memcpy(&bits, &sum, sizeof bits);
    memcpy(&off, &error, sizeof off);
    if (error < 0 || error > 0) bits += (bits & 1 ? 0 : (bits ^ off) >> 63 ? -1ull : 1ull);
    double odd;
    memcpy(&odd, &bits, sizeof odd);
    return odd;
}

template <DotMode MODE>
inline void dot_portable(PLEXUS_DOT_ARGUMENTS) {
    for (int b = 0; b < batch; b++) {
        float sum[WIDTH] = {};
        for (int i = 0; i < count; i++) {
            const double* v = x[b][rows[i]];
            const Wide& e = w[rows[i]];
            for (int c = 0; c < cols; c++) {
                double s = ((v[0] * e[0][c] + v[1] * e[1][c]) + v[2] * e[2][c]) + v[3] * e[3][c];
                if (MODE != PLAIN) {
                    const double low = ((v[4] * e[0][c] + v[5] * e[1][c]) + v[6] * e[2][c]) + v[7] * e[3][c];
                    double whole = 0;
                    if (MODE == CAREFUL)
                        whole = (((v[0] + v[4]) * e[0][c] + (v[1] + v[5]) * e[1][c]) + (v[2] + v[6]) * e[2][c]) +
                                (v[3] + v[7]) * e[3][c];
                    s = whole - whole == 0 ? add_to_odd(s, low) : whole;
                }
                sum[c] += static_cast<float>(s);
            }
        }
        memcpy(y[b], sum, sizeof sum);
    }
}

// Planted fault 16: the sum of the first two products is rounded to FP32 before the others are added.
inline void dot_rounded_twice(PLEXUS_DOT_ARGUMENTS) {
    for (int b = 0; b < batch; b++)
        for (int c = 0; c < cols; c++) {
            float sum = 0;
            for (int i = 0; i < count; i++) {
                const double* v = x[b][rows[i]];
                const Wide& e = w[rows[i]];
                double s = 0;
                for (int k = 0; k < ELEMENTS; k++) {
                    s += v[k] * e[k][c] + v[ELEMENTS + k] * e[k][c];
                    if (k == 1) s = static_cast<float>(s);
                }
                sum += static_cast<float>(s);
            }
            y[b][c] = sum;
        }
}

#if defined(__x86_64__)
// B beats, V vectors of doubles at a time.
template <DotMode MODE, int B, int V>
__attribute__((target("avx512f"))) inline void dot_avx512_block(const Wide* w, const Halves (*x)[WIDTH],
                                                                const uint8_t* rows, int count, int c,
                                                                float (*y)[WIDTH]) {
    __m256 sum[B][V];
#pragma GCC unroll 8
    for (int b = 0; b < B; b++)
#pragma GCC unroll 8
        for (int v = 0; v < V; v++) sum[b][v] = _mm256_setzero_ps();
    for (int i = 0; i < count; i++) {
        const int r = rows[i];
        __m512d e[ELEMENTS][V];
#pragma GCC unroll 8
        for (int k = 0; k < ELEMENTS; k++)
#pragma GCC unroll 8
            for (int v = 0; v < V; v++) e[k][v] = _mm512_loadu_pd(&w[r][k][c + 8 * v]);
#pragma GCC unroll 8
        for (int b = 0; b < B; b++) {
            const double* m = x[b][r];
#pragma GCC unroll 8
            for (int v = 0; v < V; v++) {
                __m512d s = _mm512_mul_pd(_mm512_set1_pd(m[0]), e[0][v]);
#pragma GCC unroll 8
                for (int k = 1; k < ELEMENTS; k++) s = _mm512_fmadd_pd(_mm512_set1_pd(m[k]), e[k][v], s);
                if (MODE != PLAIN) {
                    __m512d low = _mm512_mul_pd(_mm512_set1_pd(m[4]), e[0][v]);
#pragma GCC unroll 8
                    for (int k = 1; k < ELEMENTS; k++) low = _mm512_fmadd_pd(_mm512_set1_pd(m[4 + k]), e[k][v], low);
                    const __m512d down = _mm512_add_round_pd(s, low, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
                    const __m512d up = _mm512_add_round_pd(s, low, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
                    const __mmask8 odd = _mm512_test_epi64_mask(_mm512_castpd_si512(down), _mm512_set1_epi64(1));
                    const __m512d exact = _mm512_mask_blend_pd(odd, up, down);
                    if (MODE == CAREFUL) {
                        s = _mm512_mul_pd(_mm512_set1_pd(m[0] + m[4]), e[0][v]);
#pragma GCC unroll 8
                        for (int k = 1; k < ELEMENTS; k++)
                            s = _mm512_fmadd_pd(_mm512_set1_pd(m[k] + m[4 + k]), e[k][v], s);
                        const __mmask8 finite =
                            _mm512_cmp_pd_mask(_mm512_sub_pd(s, s), _mm512_setzero_pd(), _CMP_EQ_OQ);
                        s = _mm512_mask_blend_pd(finite, s, exact);
                    } else {
                        s = exact;
                    }
                }
                sum[b][v] = _mm256_add_ps(sum[b][v], _mm512_cvtpd_ps(s));
            }
        }
    }
#pragma GCC unroll 8
    for (int b = 0; b < B; b++)
#pragma GCC unroll 8
        for (int v = 0; v < V; v++) _mm256_storeu_ps(y[b] + c + 8 * v, sum[b][v]);
}

template <DotMode MODE>
__attribute__((target("avx512f"))) inline void dot_avx512(PLEXUS_DOT_ARGUMENTS) {
    int b = 0;
    for (; b + 4 <= batch; b += 4) {
        int c = 0;
        for (; c + 16 <= cols; c += 16) dot_avx512_block<MODE, 4, 2>(w, x + b, rows, count, c, y + b);
        for (; c < cols; c += 8) dot_avx512_block<MODE, 4, 1>(w, x + b, rows, count, c, y + b);
    }
    for (; b < batch; b++) {
        int c = 0;
        for (; c + 16 <= cols; c += 16) dot_avx512_block<MODE, 1, 2>(w, x + b, rows, count, c, y + b);
        for (; c < cols; c += 8) dot_avx512_block<MODE, 1, 1>(w, x + b, rows, count, c, y + b);
    }
}

// Four columns, B beats at a time.
template <DotMode MODE, int B>
__attribute__((target("avx2,fma"))) inline void dot_avx2_block(const Wide* w, const Halves (*x)[WIDTH],
                                                               const uint8_t* rows, int count, int c,
                                                               float (*y)[WIDTH]) {
    __m128 sum[B];
#pragma GCC unroll 8
    for (int b = 0; b < B; b++) sum[b] = _mm_setzero_ps();
    for (int i = 0; i < count; i++) {
        const int r = rows[i];
        __m256d e[ELEMENTS];
#pragma GCC unroll 8
        for (int k = 0; k < ELEMENTS; k++) e[k] = _mm256_loadu_pd(&w[r][k][c]);
#pragma GCC unroll 8
        for (int b = 0; b < B; b++) {
            const double* m = x[b][r];
            __m256d s = _mm256_mul_pd(_mm256_set1_pd(m[0]), e[0]);
#pragma GCC unroll 8
            for (int k = 1; k < ELEMENTS; k++) s = _mm256_fmadd_pd(_mm256_set1_pd(m[k]), e[k], s);
            if (MODE != PLAIN) {
                __m256d low = _mm256_mul_pd(_mm256_set1_pd(m[4]), e[0]);
#pragma GCC unroll 8
                for (int k = 1; k < ELEMENTS; k++) low = _mm256_fmadd_pd(_mm256_set1_pd(m[4 + k]), e[k], low);
                const __m256d near = _mm256_add_pd(s, low), back = _mm256_sub_pd(near, s);
                const __m256d error = _mm256_add_pd(_mm256_sub_pd(s, _mm256_sub_pd(near, back)), _mm256_sub_pd(low, back));
                const __m256i bits = _mm256_castpd_si256(near), one = _mm256_set1_epi64x(1);
                const __m256i inexact = _mm256_castpd_si256(_mm256_cmp_pd(error, _mm256_setzero_pd(), _CMP_NEQ_OQ));
                const __m256i even = _mm256_cmpeq_epi64(_mm256_and_si256(bits, one), _mm256_setzero_si256());
                const __m256i against = _mm256_srli_epi64(_mm256_xor_si256(bits, _mm256_castpd_si256(error)), 63);
                const __m256i step = _mm256_sub_epi64(one, _mm256_add_epi64(against, against));
                const __m256d exact = _mm256_castsi256_pd(
                    _mm256_add_epi64(bits, _mm256_and_si256(_mm256_and_si256(inexact, even), step)));
                if (MODE == CAREFUL) {
                    s = _mm256_mul_pd(_mm256_set1_pd(m[0] + m[4]), e[0]);
#pragma GCC unroll 8
                    for (int k = 1; k < ELEMENTS; k++) s = _mm256_fmadd_pd(_mm256_set1_pd(m[k] + m[4 + k]), e[k], s);
                    s = _mm256_blendv_pd(s, exact, _mm256_cmp_pd(_mm256_sub_pd(s, s), _mm256_setzero_pd(), _CMP_EQ_OQ));
                } else {
                    s = exact;
                }
            }
            sum[b] = _mm_add_ps(sum[b], _mm256_cvtpd_ps(s));
        }
    }
#pragma GCC unroll 8
    for (int b = 0; b < B; b++) _mm_storeu_ps(y[b] + c, sum[b]);
}

template <DotMode MODE>
__attribute__((target("avx2,fma"))) inline void dot_avx2(PLEXUS_DOT_ARGUMENTS) {
    int b = 0;
    for (; b + 4 <= batch; b += 4)
        for (int c = 0; c < cols; c += 4) dot_avx2_block<MODE, 4>(w, x + b, rows, count, c, y + b);
    for (; b < batch; b++)
        for (int c = 0; c < cols; c += 4) dot_avx2_block<MODE, 1>(w, x + b, rows, count, c, y + b);
}
#endif

// The kernels of each DotMode, for the instructions that choose_kernels has chosen.
struct DotKernels {
    DotKernel of[3];
};

inline DotKernels choose_dot_kernels(const Kernels& chosen) {
#if defined(__x86_64__)
    if (chosen.fast == kernel_avx512) return {{dot_avx512<PLAIN>, dot_avx512<SPLIT>, dot_avx512<CAREFUL>}};
    if (chosen.fast == kernel_avx2) return {{dot_avx2<PLAIN>, dot_avx2<SPLIT>, dot_avx2<CAREFUL>}};
#endif
    (void)chosen;
    return {{dot_portable<PLAIN>, dot_portable<SPLIT>, dot_portable<CAREFUL>}};
}

}  // namespace plexus
