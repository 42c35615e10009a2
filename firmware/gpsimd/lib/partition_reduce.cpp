// dst[0, i] = sum, max or min over all partitions of src0[p, i], 32-bit integers with sign; sums wrap.
// Each core reduces its own; the one with dst's partition reduces what all of them left in shared memory.
#include "lanes.h"

#ifdef __riscv_vector
#define GP_VECTOR_REDUCTION(vector, of_vector)                                                                     \
    gp::SignedVector operator()(gp::SignedVector a, gp::SignedVector b, size_t vl) const { return vector(a, b, vl); } \
    int32_t of_all(gp::SignedVector of, size_t vl) const {                                                         \
        return __riscv_vmv_x_s_i32m1_i32(of_vector(of, __riscv_vmv_v_x_i32m1(NOTHING, 1), vl));                    \
    }
#else
#define GP_VECTOR_REDUCTION(vector, of_vector)
#endif
#define GP_REDUCTION(name, nothing, scalar, vector, of_vector)            \
    struct name {                                                         \
        static constexpr int32_t NOTHING = nothing;                       \
        int32_t operator()(int32_t a, int32_t b) const { return scalar; } \
        GP_VECTOR_REDUCTION(vector, of_vector)                            \
    }
GP_REDUCTION(Sum, 0, int32_t(uint32_t(a) + uint32_t(b)), __riscv_vadd, __riscv_vredsum);
GP_REDUCTION(Max, INT32_MIN, a > b ? a : b, __riscv_vmax, __riscv_vredmax);
GP_REDUCTION(Min, INT32_MAX, a < b ? a : b, __riscv_vmin, __riscv_vredmin);

template <typename Op>
static void reduce() {
    const Op op;
    const gp::Columns<const uint32_t> from(GP_SRC0);
    const gp::Columns<int32_t> to(GP_DST);
    const uint32_t cores = gp_run_cores(), rank = gp_run_rank(), piece = gp::SHARED_WORDS / 2 / cores;
    const uint32_t rows = from.rows;
    auto in = from.walk();
    auto out = to.walk();
    for (uint32_t first = 0, half = 0; first < from.count[0]; first += piece, half ^= gp::SHARED_WORDS / 2) {
        const uint32_t left = from.count[0] - first, columns = left < piece ? left : piece;
        int32_t *all = reinterpret_cast<int32_t *>(gp::shared(half)), *mine = all + rank * piece;
        for (uint32_t i = 0; i < columns; i++, in.next()) {
#ifdef __riscv_vector
            const size_t vl = gp::length(rows);
            mine[i] = vl ? op.of_all(gp::with_sign(gp::fetch(in.at, vl)), vl) : Op::NOTHING;
#else
            int32_t value = Op::NOTHING;
            for (uint32_t p = 0; p < rows; p++) value = op(value, int32_t(in[p]));
            mine[i] = value;
#endif
        }
        gp_barrier();
        if (!to.rows) continue;
#ifdef __riscv_vector
        for (uint32_t i = 0, vl; i < columns; i += vl, out.at += int32_t(vl) * out.step) {
            vl = gp::length(columns - i);
            gp::SignedVector value = __riscv_vle32_v_i32m8(all + i, vl);
            for (uint32_t core = 1; core < cores; core++)
                value = op(value, __riscv_vle32_v_i32m8(all + core * piece + i, vl), vl);
            __riscv_vsse32(out.at, out.step * int32_t(sizeof *out.at), value, vl);
        }
#else
        for (uint32_t i = 0; i < columns; i++, out.next()) {
            int32_t value = all[i];
            for (uint32_t core = 1; core < cores; core++) value = op(value, all[core * piece + i]);
            out[0] = value;
        }
#endif
    }
}

GP_ENTRY(partition_reduce) {
    switch (GP_OPERATOR(PARTITION_REDUCE_OP)) {
        case PLEXUS_REDUCTION_SUM: reduce<Sum>(); break;
        case PLEXUS_REDUCTION_MAX: reduce<Max>(); break;
        default: reduce<Min>();
    }
    return 0;
}
