// dst[0, i] = sum, max or min over all partitions of src0[p, i], 32-bit integers with sign; sums wrap.
// Each core reduces its own; the one with dst's partition reduces what all of them left in shared memory.
#include "columns.h"

template <typename Op>
static void reduce(int32_t identity, Op op) {
    const gp::Columns<const int32_t> from(GP_SRC0);
    const gp::Columns<int32_t> to(GP_DST);
    const uint32_t cores = gp_run_cores(), rank = gp_run_rank(), piece = gp::SHARED_WORDS / 2 / cores;
    const uint32_t rows = from.rows;
    auto in = from.walk();
    auto out = to.walk();
    for (uint32_t first = 0, half = 0; first < from.count[0]; first += piece, half ^= gp::SHARED_WORDS / 2) {
        const uint32_t left = from.count[0] - first, columns = left < piece ? left : piece;
        int32_t *all = reinterpret_cast<int32_t *>(gp::shared(half)), *mine = all + rank * piece;
        for (uint32_t i = 0; i < columns; i++, in.next()) {
            int32_t value = identity;
            GP_LANES
            for (uint32_t p = 0; p < rows; p++) value = op(value, in[p]);
            mine[i] = value;
        }
        gp_barrier();
        for (uint32_t i = 0; i < columns && to.rows; i++, out.next()) {
            int32_t value = all[i];
            for (uint32_t core = 1; core < cores; core++) value = op(value, all[core * piece + i]);
            out[0] = value;
        }
    }
}

GP_ENTRY(partition_reduce) {
    switch (GP_OPERATOR(PARTITION_REDUCE_OP)) {
        case PLEXUS_REDUCTION_SUM: reduce(0, [](int32_t a, int32_t b) { return int32_t(uint32_t(a) + b); }); break;
        case PLEXUS_REDUCTION_MAX: reduce(INT32_MIN, [](int32_t a, int32_t b) { return a > b ? a : b; }); break;
        default: reduce(INT32_MAX, [](int32_t a, int32_t b) { return a < b ? a : b; });
    }
    return 0;
}
