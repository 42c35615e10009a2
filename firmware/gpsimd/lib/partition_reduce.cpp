// dst[0, i] = sum, max or min over all partitions of src0[p, i], 32-bit integers with sign; sums wrap.
// Each core reduces its own partitions, then some columns of what all of them left in shared memory.
#include "lanes.h"

#define GP_REDUCTION(name, without, scalar, vector) \
    struct name {                                   \
        static constexpr int32_t nothing = without; \
        GP_OF_INTEGERS(scalar)                      \
        GP_OF_VECTORS(vector)                       \
    }
#ifdef __riscv_vector
#define GP_OF_INTEGERS(scalar)
#define GP_OF_VECTORS(vector) \
    static gp::SignedVector of(gp::SignedVector a, gp::SignedVector b, size_t vl) { return vector(a, b, vl); }
#else
#define GP_OF_INTEGERS(scalar) \
    static int32_t of(int32_t a, int32_t b) { return scalar; }
#define GP_OF_VECTORS(vector)
#endif
GP_REDUCTION(Sum, 0, int32_t(uint32_t(a) + uint32_t(b)), __riscv_vadd);
GP_REDUCTION(Max, INT32_MIN, a > b ? a : b, __riscv_vmax);
GP_REDUCTION(Min, INT32_MAX, a < b ? a : b, __riscv_vmin);

#ifdef __riscv_vector
/* `count` neighbours, `step` words apart, of each of `vl` words from `at` on. */
template <typename Op>
[[gnu::noinline]] static void fold(int32_t *to, const int32_t *at, uint32_t count, uint32_t step, size_t vl) {
    gp::SignedVector value = __riscv_vle32_v_i32m8(at, vl);
    while (--count) value = Op::of(value, __riscv_vle32_v_i32m8(at += step, vl), vl);
    __riscv_vse32(to, value, vl);
}

/* All words of each of `vl` rows of `table`: in every step the word of another lane than its neighbours, so that their
 * banks differ. */
template <typename Op>
[[gnu::noinline]] static void across(int32_t *to, const uint32_t *table, uint32_t bytes, size_t vl) {
    const gp::Vector own = __riscv_vmadd(__riscv_vid_v_u32m8(vl), bytes, gp::lane_bytes(vl), vl);
    gp::SignedVector value = gp::with_sign(__riscv_vluxei32(table, own, vl));
    for (uint32_t byte = 4; byte < bytes; byte += 4)
        value = Op::of(value, gp::with_sign(__riscv_vluxei32(table, __riscv_vxor(own, byte, vl), vl)), vl);
    __riscv_vse32(to, value, vl);
}

struct Any {
    int32_t nothing;
    void (*fold)(int32_t *to, const int32_t *at, uint32_t count, uint32_t step, size_t vl);
    void (*across)(int32_t *to, const uint32_t *table, uint32_t bytes, size_t vl);
};
template <typename Op>
static constexpr Any any = {Op::nothing, fold<Op>, across<Op>};

/* Columns from a copy in local memory, as many at once as eight registers have elements. */
static void reduce_lanes(const Any &op, gp::Walk<const uint32_t> in, uint32_t columns, uint32_t rows, int32_t *to) {
    const uint32_t lanes = gp_lanes();
    const gp::Table table;
    const bool roomy = table.rows * lanes >= 4 * gp::SCRATCH_WORDS;
    uint32_t *const at = roomy ? table.at : gp::scratch;
    const size_t most = gp::length((roomy ? 4 : 1) * gp::SCRATCH_WORDS / lanes);
    if (rows < lanes) gp::clear(at, most * lanes, uint32_t(op.nothing));
    for (size_t vl; columns; columns -= vl, in.at += int32_t(vl) * in.step, to += vl) {
        vl = columns < most ? columns : most;
        gp::copy({at, int32_t(lanes)}, in, vl, rows);
        op.across(to, at, 4 * lanes, vl);
    }
}
#endif

template <typename Op>
static void reduce(const Op op) {
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
        reduce_lanes(op, {in.at, in.step}, columns, rows, mine);
        in.at += int32_t(columns) * in.step;
#else
        for (uint32_t i = 0; i < columns; i++, in.next()) {
            int32_t value = op.nothing;
            for (uint32_t p = 0; p < rows; p++) value = op.of(value, int32_t(in[p]));
            mine[i] = value;
        }
#endif
        gp_barrier();
        const uint32_t each = (columns + cores - 1) / cores, begin = rank * each, behind = begin + each;
        const uint32_t end = behind < columns ? behind : columns;
#ifdef __riscv_vector
        for (uint32_t i = begin, vl; i < end; i += vl) {
            vl = gp::length(end - i);
            op.fold(all + i, all + i, cores, piece, vl);
        }
#else
        for (uint32_t i = begin; i < end; i++) {
            int32_t value = all[i];
            for (uint32_t core = 1; core < cores; core++) value = op.of(value, all[core * piece + i]);
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
#ifdef __riscv_vector
#define GP_AS(Op) reduce(any<Op>)
#else
#define GP_AS(Op) reduce(Op())
#endif
    switch (GP_OPERATOR(PARTITION_REDUCE_OP)) {
        case PLEXUS_REDUCTION_SUM: GP_AS(Sum); break;
        case PLEXUS_REDUCTION_MAX: GP_AS(Max); break;
        default: GP_AS(Min);
    }
    return 0;
}
