// dst[0, i] = sum, max or min over all partitions of src0[p, i], 32-bit integers with sign; sums wrap.
// Each core reduces its own partitions, then some columns of what all of them left in shared memory.
#include "lanes.h"

#ifdef __riscv_vector
#define GP_VECTOR_REDUCTION(vector) \
    gp::SignedVector operator()(gp::SignedVector a, gp::SignedVector b, size_t vl) const { return vector(a, b, vl); }
#else
#define GP_VECTOR_REDUCTION(vector)
#endif
#define GP_REDUCTION(name, nothing, scalar, vector)                       \
    struct name {                                                         \
        static constexpr int32_t NOTHING = nothing;                       \
        int32_t operator()(int32_t a, int32_t b) const { return scalar; } \
        GP_VECTOR_REDUCTION(vector)                                       \
    }
GP_REDUCTION(Sum, 0, int32_t(uint32_t(a) + uint32_t(b)), __riscv_vadd);
GP_REDUCTION(Max, INT32_MIN, a > b ? a : b, __riscv_vmax);
GP_REDUCTION(Min, INT32_MAX, a < b ? a : b, __riscv_vmin);

#ifdef __riscv_vector
/* Columns from a copy in local memory, as many at once as that holds: each element reduces a column of its own, in every
 * step the word of another lane than its neighbours, so that their banks differ. */
template <typename Op>
static void across(gp::Walk<const uint32_t> in, uint32_t columns, uint32_t rows, int32_t *to) {
    const Op op;
    const uint32_t lanes = gp_lanes(), bytes = 4 * lanes;
    const gp::Table table;
    const bool roomy = table.rows * lanes >= 4 * gp::SCRATCH_WORDS;
    uint32_t *const at = roomy ? table.at : gp::scratch;
    const size_t most = gp::length((roomy ? 4 : 1) * gp::SCRATCH_WORDS / lanes);
    const gp::Vector own = __riscv_vmadd(__riscv_vid_v_u32m8(most), bytes, gp::lane_bytes(most), most);
    if (rows < lanes) gp::clear(at, most * lanes, uint32_t(Op::NOTHING));
    for (size_t vl; columns; columns -= vl, in.at += int32_t(vl) * in.step, to += vl) {
        vl = columns < most ? columns : most;
        gp::copy({at, int32_t(lanes)}, in, vl, rows);
        gp::SignedVector value = gp::with_sign(gp::all(uint32_t(Op::NOTHING), vl));
        for (uint32_t byte = 0; byte < bytes; byte += 4)
            value = op(value, gp::with_sign(__riscv_vluxei32(at, __riscv_vxor(own, byte, vl), vl)), vl);
        __riscv_vse32(to, value, vl);
    }
}
#endif

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
#ifdef __riscv_vector
        across<Op>({in.at, in.step}, columns, rows, mine);
        in.at += int32_t(columns) * in.step;
#else
        for (uint32_t i = 0; i < columns; i++, in.next()) {
            int32_t value = Op::NOTHING;
            for (uint32_t p = 0; p < rows; p++) value = op(value, int32_t(in[p]));
            mine[i] = value;
        }
#endif
        gp_barrier();
        const uint32_t each = (columns + cores - 1) / cores, begin = rank * each, behind = begin + each;
        const uint32_t end = behind < columns ? behind : columns;
#ifdef __riscv_vector
        for (uint32_t i = begin, vl; i < end; i += vl) {
            vl = gp::length(end - i);
            gp::SignedVector value = __riscv_vle32_v_i32m8(all + i, vl);
            for (uint32_t core = 1; core < cores; core++)
                value = op(value, __riscv_vle32_v_i32m8(all + core * piece + i, vl), vl);
            __riscv_vse32(all + i, value, vl);
        }
#else
        for (uint32_t i = begin; i < end; i++) {
            int32_t value = all[i];
            for (uint32_t core = 1; core < cores; core++) value = op(value, all[core * piece + i]);
            all[i] = value;
        }
#endif
        gp_barrier();
        if (!to.rows) continue;
#ifdef __riscv_vector
        for (uint32_t i = 0, vl; i < columns; i += vl, out.at += int32_t(vl) * out.step) {
            vl = gp::length(columns - i);
            __riscv_vsse32(out.at, out.step * int32_t(sizeof *out.at), __riscv_vle32_v_i32m8(all + i, vl), vl);
        }
#else
        for (uint32_t i = 0; i < columns; i++, out.next()) out[0] = all[i];
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
