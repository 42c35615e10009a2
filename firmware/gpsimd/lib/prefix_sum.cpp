// dst[p, i] = sum of src0[p, 0] to src0[p, i], or to src0[p, i - 1] if exclusive; 32-bit integers that wrap around.
#include "lanes.h"

constexpr uint32_t LANES_MAX = 32;

GP_ENTRY(prefix_sum) {
    const gp::Columns<const uint32_t> from(GP_SRC0);
    const gp::Columns<uint32_t> to(GP_DST);
    const bool exclusive = GP_OPERATOR(PREFIX_SUM_EXCLUSIVE);
    const uint32_t columns = from.count[0], rows = from.rows;
    auto in = from.walk();
    auto out = to.walk();
#ifdef __riscv_vector
    const size_t vl = gp::length(rows);
    gp::Vector sum = gp::all(0, vl);
    for (uint32_t i = 0; i < columns; i++, in.next(), out.next()) {
        const gp::Vector with = __riscv_vadd(sum, gp::fetch(in.at, vl), vl);
        gp::put(out.at, exclusive ? sum : with, vl);
        sum = with;
    }
#else
    uint32_t sum[LANES_MAX] = {};
    for (uint32_t i = 0; i < columns; i++, in.next(), out.next())
        for (uint32_t p = 0; p < rows; p++) {
            const uint32_t before = sum[p], with = before + in[p];
            out[p] = exclusive ? before : with;
            sum[p] = with;
        }
#endif
    return 0;
}
