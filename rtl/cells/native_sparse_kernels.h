// Column sums of sparse beats: y[b][c] = fold over rows r of fma(x[b][r / 4][slot[r][c]], w[r][c], y), from +0.
//
// As native_kernels.h, and each weight chooses among the sixteen numbers of its aligned four rows: a table that fits
// into one register of AVX-512 and two of AVX2.
#pragma once
#include "native_kernels.h"

namespace plexus {

constexpr int FOUR = 4;                // rows that share their numbers, and numbers that each of them brings
constexpr int NUMBERS = FOUR * FOUR;

using Fours = float[WIDTH / FOUR][NUMBERS];  // a moving beat

using SparseKernel = void (*)(const float (*w)[WIDTH], const uint8_t (*slot)[WIDTH], const Fours* x,
                              const uint8_t* rows, int count, int batch, int cols, float (*y)[WIDTH]);

#define PLEXUS_SPARSE_ARGUMENTS                                                                              \
    const float(*w)[WIDTH], const uint8_t(*slot)[WIDTH], const Fours *x, const uint8_t *rows, int count,     \
        int batch, int cols, float(*y)[WIDTH]

inline void sparse_portable(PLEXUS_SPARSE_ARGUMENTS) {
    for (int b = 0; b < batch; b++) {
        float sum[WIDTH] = {};
        for (int i = 0; i < count; i++) {
            const int r = rows[i];
            const float* table = x[b][r / FOUR];
            for (int c = 0; c < cols; c++)
                sum[c] = static_cast<float>(static_cast<double>(table[slot[r][c]]) * w[r][c] + sum[c]);
        }
        memcpy(y[b], sum, sizeof sum);
    }
}

#if defined(__x86_64__)
// B beats, V vectors of columns from column c on.
template <int B, int V>
__attribute__((target("avx512f"))) inline void sparse_avx512_block(const float (*w)[WIDTH],
                                                                   const uint8_t (*slot)[WIDTH], const Fours* x,
                                                                   const uint8_t* rows, int count, int c,
                                                                   float (*y)[WIDTH]) {
    __m512 sum[B][V];
#pragma GCC unroll 8
    for (int b = 0; b < B; b++)
#pragma GCC unroll 8
        for (int v = 0; v < V; v++) sum[b][v] = _mm512_setzero_ps();
    for (int i = 0; i < count; i++) {
        const int r = rows[i];
        __m512 weight[V];
        __m512i which[V];
#pragma GCC unroll 8
        for (int v = 0; v < V; v++) {
            weight[v] = _mm512_loadu_ps(w[r] + c + 16 * v);
            which[v] = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(slot[r] + c + 16 * v)));
        }
#pragma GCC unroll 8
        for (int b = 0; b < B; b++) {
            const __m512 table = _mm512_loadu_ps(x[b][r / FOUR]);
#pragma GCC unroll 8
            for (int v = 0; v < V; v++)
                sum[b][v] = _mm512_fmadd_ps(_mm512_permutexvar_ps(which[v], table), weight[v], sum[b][v]);
        }
    }
#pragma GCC unroll 8
    for (int b = 0; b < B; b++)
#pragma GCC unroll 8
        for (int v = 0; v < V; v++) _mm512_storeu_ps(y[b] + c + 16 * v, sum[b][v]);
}

__attribute__((target("avx512f"))) inline void sparse_avx512(PLEXUS_SPARSE_ARGUMENTS) {
    int b = 0;
    for (; b + 4 <= batch; b += 4) {
        int c = 0;
        for (; c + 64 <= cols; c += 64) sparse_avx512_block<4, 4>(w, slot, x + b, rows, count, c, y + b);
        for (; c < cols; c += 16) sparse_avx512_block<4, 1>(w, slot, x + b, rows, count, c, y + b);
    }
    for (; b < batch; b++) {
        int c = 0;
        for (; c + 64 <= cols; c += 64) sparse_avx512_block<1, 4>(w, slot, x + b, rows, count, c, y + b);
        for (; c < cols; c += 16) sparse_avx512_block<1, 1>(w, slot, x + b, rows, count, c, y + b);
    }
}

// Eight columns of the numbers that meet the weights of row r.
__attribute__((target("avx2,fma"))) inline __m256 sparse_avx2_chosen(const float* table, const uint8_t* slot) {
    const __m256i which = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(slot)));
    const __m256 low = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table), which);  // by bits 2:0
    const __m256 high = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table + 8), which);
    return _mm256_blendv_ps(low, high, _mm256_castsi256_ps(_mm256_slli_epi32(which, 28)));  // by bit 3
}

template <int V>
__attribute__((target("avx2,fma"))) inline void sparse_avx2_block(const float (*w)[WIDTH], const uint8_t (*slot)[WIDTH],
                                                                  const Fours& x, const uint8_t* rows, int count, int c,
                                                                  float* y) {
    __m256 sum[V];
#pragma GCC unroll 8
    for (int v = 0; v < V; v++) sum[v] = _mm256_setzero_ps();
    for (int i = 0; i < count; i++) {
        const int r = rows[i];
        const float* table = x[r / FOUR];
#pragma GCC unroll 8
        for (int v = 0; v < V; v++)
            sum[v] = _mm256_fmadd_ps(sparse_avx2_chosen(table, slot[r] + c + 8 * v), _mm256_loadu_ps(w[r] + c + 8 * v),
                                     sum[v]);
    }
#pragma GCC unroll 8
    for (int v = 0; v < V; v++) _mm256_storeu_ps(y + c + 8 * v, sum[v]);
}

__attribute__((target("avx2,fma"))) inline void sparse_avx2(PLEXUS_SPARSE_ARGUMENTS) {
    for (int b = 0; b < batch; b++) {
        int c = 0;
        for (; c + 64 <= cols; c += 64) sparse_avx2_block<8>(w, slot, x[b], rows, count, c, y[b]);
        for (; c < cols; c += 16) sparse_avx2_block<2>(w, slot, x[b], rows, count, c, y[b]);
    }
}

// Through double, 32 or 16 columns at a time.
__attribute__((target("avx512f"))) inline void sparse_avx512_double(PLEXUS_SPARSE_ARGUMENTS) {
    for (int b = 0; b < batch; b++)
        for (int c = 0; c < cols; c += 32) {
            __m512d sum[4] = {_mm512_setzero_pd(), _mm512_setzero_pd(), _mm512_setzero_pd(), _mm512_setzero_pd()};
            for (int i = 0; i < count; i++) {
                const int r = rows[i];
                const __m512 table = _mm512_loadu_ps(x[b][r / FOUR]);
                float value[32] __attribute__((aligned(64)));
#pragma GCC unroll 2
                for (int v = 0; v < 2; v++) {
                    const __m128i few = _mm_loadu_si128(reinterpret_cast<const __m128i*>(slot[r] + c + 16 * v));
                    _mm512_store_ps(value + 16 * v, _mm512_permutexvar_ps(_mm512_cvtepu8_epi32(few), table));
                }
#pragma GCC unroll 4
                for (int v = 0; v < 4; v++) {
                    const __m512d each = _mm512_cvtps_pd(_mm256_loadu_ps(w[r] + c + 8 * v));
                    const __m512d wide = _mm512_cvtps_pd(_mm256_load_ps(value + 8 * v));
                    sum[v] = _mm512_cvtps_pd(_mm512_cvtpd_ps(_mm512_fmadd_pd(wide, each, sum[v])));
                }
            }
#pragma GCC unroll 4
            for (int v = 0; v < 4; v++) _mm256_storeu_ps(y[b] + c + 8 * v, _mm512_cvtpd_ps(sum[v]));
        }
}

__attribute__((target("avx2,fma"))) inline void sparse_avx2_double(PLEXUS_SPARSE_ARGUMENTS) {
    for (int b = 0; b < batch; b++)
        for (int c = 0; c < cols; c += 16) {
            __m256d sum[4] = {_mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd()};
            for (int i = 0; i < count; i++) {
                const int r = rows[i];
                float value[16] __attribute__((aligned(32)));
                for (int v = 0; v < 2; v++)
                    _mm256_store_ps(value + 8 * v, sparse_avx2_chosen(x[b][r / FOUR], slot[r] + c + 8 * v));
#pragma GCC unroll 4
                for (int v = 0; v < 4; v++) {
                    const __m256d each = _mm256_cvtps_pd(_mm_loadu_ps(w[r] + c + 4 * v));
                    const __m256d wide = _mm256_cvtps_pd(_mm_load_ps(value + 4 * v));
                    sum[v] = _mm256_cvtps_pd(_mm256_cvtpd_ps(_mm256_fmadd_pd(wide, each, sum[v])));
                }
            }
#pragma GCC unroll 4
            for (int v = 0; v < 4; v++) _mm_storeu_ps(y[b] + c + 4 * v, _mm256_cvtpd_ps(sum[v]));
        }
}
#endif

// As Kernels, for the instructions that choose_kernels has chosen.
struct SparseKernels {
    SparseKernel fast;
    SparseKernel steady;
};

inline SparseKernels choose_sparse_kernels(const Kernels& chosen) {
#if defined(__x86_64__)
    if (chosen.fast == kernel_avx512) return {sparse_avx512, sparse_avx512_double};
    if (chosen.fast == kernel_avx2) return {sparse_avx2, sparse_avx2_double};
#endif
    (void)chosen;
    return {sparse_portable, sparse_portable};
}

}  // namespace plexus
