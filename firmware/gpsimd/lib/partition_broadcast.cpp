// dst[p, i] = src0[0, i] for all partitions of dst; any 32-bit elements. By way of shared memory.
#include "lanes.h"

GP_ENTRY(partition_broadcast) {
    const gp::Columns<const uint32_t> from(GP_SRC0);
    const gp::Columns<uint32_t> to(GP_DST);
    constexpr uint32_t piece = gp::SHARED_WORDS / 2;
    const uint32_t rows = to.rows;
    auto in = from.walk();
    auto out = to.walk();
    for (uint32_t first = 0, half = 0; first < from.count[0]; first += piece, half ^= piece) {
        const uint32_t left = from.count[0] - first, columns = left < piece ? left : piece;
        uint32_t *row = gp::shared(half);
        for (uint32_t i = 0; i < columns && from.rows; i++, in.next()) row[i] = in[0];
        gp_barrier();
        for (uint32_t i = 0; i < columns && rows; i++, out.next()) {
            const uint32_t value = row[i];
#ifdef __riscv_vector
            const size_t vl = gp::length(rows);
            gp::put(out.at, gp::all(value, vl), vl);
#else
            for (uint32_t p = 0; p < rows; p++) out[p] = value;
#endif
        }
    }
    return 0;
}
