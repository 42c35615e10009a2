// Column sums of a batch of moving beats: y[b][c] = fold over rows r of fma(x[b][r], w[r][c], y), from +0.
//
// One template over a vector of numbers, compiled for several instruction sets; every variant gives the
// same bits, because each step is RN32(x * w + y) exactly:
// * fused: the instruction does it;
// * through double: the product of two significands of up to 12 bits is exact in double, both addends have
//   at most 24 bits and 53 >= 2 * 24 + 2, so rounding to double and then to float rounds as once.
// The second needs no FMA instruction and is not slowed down by subnormal numbers.
#pragma once
#include <cstdint>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace plexus {

constexpr int WIDTH = 128;  // floats in a row of weights or sums, whatever the array's size
constexpr int BATCH = 4;    // beats that share each fetch of a weight

// w: rows of WIDTH weights; x: moving values, row r of the array at x[b][r]; rows: indices of the rows that
// take part, in the order of the chain; sums of columns 0 to cols - 1, rounded up to 16, go to y.
using Kernel = void (*)(const float (*w)[WIDTH], const float (*x)[WIDTH], const uint8_t* rows, int count, int batch,
                        int cols, float (*y)[WIDTH]);

#define PLEXUS_KERNEL_ARGUMENTS                                                                              \
    const float(*w)[WIDTH], const float(*x)[WIDTH], const uint8_t *rows, int count, int batch, int cols,     \
        float(*y)[WIDTH]

// Planted fault 9: two roundings a step.
inline void kernel_unfused(PLEXUS_KERNEL_ARGUMENTS) {
    for (int b = 0; b < batch; b++)
        for (int c = 0; c < cols; c++) {
            float sum = 0;
            for (int i = 0; i < count; i++) {
                volatile float product = x[b][rows[i]] * w[rows[i]][c];
                sum += product;
            }
            y[b][c] = sum;
        }
}

inline void kernel_portable(PLEXUS_KERNEL_ARGUMENTS) {
    for (int b = 0; b < batch; b++) {
        float sum[WIDTH] = {};
        for (int i = 0; i < count; i++) {
            const double value = x[b][rows[i]];
            const float* weight = w[rows[i]];
            for (int c = 0; c < cols; c++) sum[c] = static_cast<float>(value * weight[c] + sum[c]);
        }
        memcpy(y[b], sum, sizeof sum);
    }
}

#if defined(__x86_64__)
// V vectors of columns at a time, B beats: B * V sums stay in registers.
#define PLEXUS_BLOCK(NAME, TARGET, B, V, LANES, VECTOR, ZERO, LOAD, SPREAD, FMA, STORE)                      \
    __attribute__((target(TARGET))) inline void NAME(const float(*w)[WIDTH], const float(*x)[WIDTH],         \
                                                     const uint8_t* rows, int count, float(*y)[WIDTH]) {     \
        VECTOR sum[B][V];                                                                                    \
        _Pragma("GCC unroll 8") for (int b = 0; b < B; b++)                                                  \
            _Pragma("GCC unroll 8") for (int v = 0; v < V; v++) sum[b][v] = ZERO();                          \
        for (int i = 0; i < count; i++) {                                                                    \
            const int r = rows[i];                                                                           \
            VECTOR weight[V];                                                                                \
            _Pragma("GCC unroll 8") for (int v = 0; v < V; v++) weight[v] = LOAD(w[r] + LANES * v);          \
            _Pragma("GCC unroll 8") for (int b = 0; b < B; b++) {                                            \
                const VECTOR value = SPREAD(x[b][r]);                                                        \
                _Pragma("GCC unroll 8") for (int v = 0; v < V; v++)                                          \
                    sum[b][v] = FMA(value, weight[v], sum[b][v]);                                            \
            }                                                                                                \
        }                                                                                                    \
        _Pragma("GCC unroll 8") for (int b = 0; b < B; b++)                                                  \
            _Pragma("GCC unroll 8") for (int v = 0; v < V; v++) STORE(y[b] + LANES * v, sum[b][v]);          \
    }

// Columns from `c` on, as pointers to rows that start there.
template <class T>
inline T from(T rows, int c) {
    return reinterpret_cast<T>(&rows[0][c]);
}

PLEXUS_BLOCK(avx512_4x4, "avx512f", 4, 4, 16, __m512, _mm512_setzero_ps, _mm512_loadu_ps, _mm512_set1_ps,
             _mm512_fmadd_ps, _mm512_storeu_ps)
PLEXUS_BLOCK(avx512_4x1, "avx512f", 4, 1, 16, __m512, _mm512_setzero_ps, _mm512_loadu_ps, _mm512_set1_ps,
             _mm512_fmadd_ps, _mm512_storeu_ps)
PLEXUS_BLOCK(avx512_1x8, "avx512f", 1, 8, 16, __m512, _mm512_setzero_ps, _mm512_loadu_ps, _mm512_set1_ps,
             _mm512_fmadd_ps, _mm512_storeu_ps)
PLEXUS_BLOCK(avx512_1x1, "avx512f", 1, 1, 16, __m512, _mm512_setzero_ps, _mm512_loadu_ps, _mm512_set1_ps,
             _mm512_fmadd_ps, _mm512_storeu_ps)
PLEXUS_BLOCK(avx2_4x2, "avx2,fma", 4, 2, 8, __m256, _mm256_setzero_ps, _mm256_loadu_ps, _mm256_set1_ps,
             _mm256_fmadd_ps, _mm256_storeu_ps)
PLEXUS_BLOCK(avx2_1x8, "avx2,fma", 1, 8, 8, __m256, _mm256_setzero_ps, _mm256_loadu_ps, _mm256_set1_ps,
             _mm256_fmadd_ps, _mm256_storeu_ps)
PLEXUS_BLOCK(avx2_1x2, "avx2,fma", 1, 2, 8, __m256, _mm256_setzero_ps, _mm256_loadu_ps, _mm256_set1_ps,
             _mm256_fmadd_ps, _mm256_storeu_ps)

__attribute__((target("avx512f"))) inline void kernel_avx512(PLEXUS_KERNEL_ARGUMENTS) {
    int b = 0;
    for (; b + 4 <= batch; b += 4) {
        int c = 0;
        for (; c + 64 <= cols; c += 64) avx512_4x4(from(w, c), x + b, rows, count, from(y + b, c));
        for (; c < cols; c += 16) avx512_4x1(from(w, c), x + b, rows, count, from(y + b, c));
    }
    for (; b < batch; b++) {
        int c = 0;
        for (; c + 128 <= cols; c += 128) avx512_1x8(from(w, c), x + b, rows, count, from(y + b, c));
        for (; c < cols; c += 16) avx512_1x1(from(w, c), x + b, rows, count, from(y + b, c));
    }
}

__attribute__((target("avx2,fma"))) inline void kernel_avx2(PLEXUS_KERNEL_ARGUMENTS) {
    int b = 0;
    for (; b + 4 <= batch; b += 4)
        for (int c = 0; c < cols; c += 16) avx2_4x2(from(w, c), x + b, rows, count, from(y + b, c));
    for (; b < batch; b++) {
        int c = 0;
        for (; c + 64 <= cols; c += 64) avx2_1x8(from(w, c), x + b, rows, count, from(y + b, c));
        for (; c < cols; c += 16) avx2_1x2(from(w, c), x + b, rows, count, from(y + b, c));
    }
}

// Through double, 8 or 4 columns a step.
__attribute__((target("avx512f"))) inline void kernel_avx512_double(PLEXUS_KERNEL_ARGUMENTS) {
    for (int b = 0; b < batch; b++)
        for (int c = 0; c < cols; c += 32) {
            __m512d sum[4] = {_mm512_setzero_pd(), _mm512_setzero_pd(), _mm512_setzero_pd(), _mm512_setzero_pd()};
            for (int i = 0; i < count; i++) {
                const __m512d value = _mm512_set1_pd(x[b][rows[i]]);
                const float* weight = w[rows[i]] + c;
#pragma GCC unroll 4
                for (int v = 0; v < 4; v++) {
                    const __m512d each = _mm512_cvtps_pd(_mm256_loadu_ps(weight + 8 * v));
                    sum[v] = _mm512_cvtps_pd(_mm512_cvtpd_ps(_mm512_fmadd_pd(value, each, sum[v])));
                }
            }
#pragma GCC unroll 4
            for (int v = 0; v < 4; v++) _mm256_storeu_ps(y[b] + c + 8 * v, _mm512_cvtpd_ps(sum[v]));
        }
}

__attribute__((target("avx2,fma"))) inline void kernel_avx2_double(PLEXUS_KERNEL_ARGUMENTS) {
    for (int b = 0; b < batch; b++)
        for (int c = 0; c < cols; c += 16) {
            __m256d sum[4] = {_mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd()};
            for (int i = 0; i < count; i++) {
                const __m256d value = _mm256_set1_pd(x[b][rows[i]]);
                const float* weight = w[rows[i]] + c;
#pragma GCC unroll 4
                for (int v = 0; v < 4; v++) {
                    const __m256d each = _mm256_cvtps_pd(_mm_loadu_ps(weight + 4 * v));
                    sum[v] = _mm256_cvtps_pd(_mm256_cvtpd_ps(_mm256_fmadd_pd(value, each, sum[v])));
                }
            }
#pragma GCC unroll 4
            for (int v = 0; v < 4; v++) _mm_storeu_ps(y[b] + c + 4 * v, _mm256_cvtpd_ps(sum[v]));
        }
}
#endif

// The kernel for ordinary numbers, and the one that does not mind subnormal ones.
struct Kernels {
    Kernel fast;
    Kernel steady;
    const char* name;
};

// PLEXUS_NATIVE_PATH=portable|avx2|avx512 in the environment asks for one; a host without it gets less.
inline Kernels choose_kernels(const char* asked) {
#if defined(__x86_64__)
    const bool portable = asked && !strcmp(asked, "portable");
    const bool narrow = asked && !strcmp(asked, "avx2");
    __builtin_cpu_init();
    if (!portable && !narrow && __builtin_cpu_supports("avx512f")) return {kernel_avx512, kernel_avx512_double, "avx512"};
    if (!portable && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return {kernel_avx2, kernel_avx2_double, "avx2"};
#endif
    (void)asked;
    return {kernel_portable, kernel_portable, "portable"};
}

}  // namespace plexus
