// dst[p, b] = how many elements of src0[p, :] are b; 32-bit integers, those outside of dst's columns do not count.
#include "lanes.h"

#ifdef __riscv_vector
/* All lanes at once, eight columns too if they lie side by side: each of them has counts of its own in local memory, and
 * one more for what is outside. False if that has no room for them. */
static bool by_lanes(const gp::Columns<const uint32_t> &from, const gp::Columns<uint32_t> &to) {
    constexpr uint32_t COPIES = 8;
    const gp::Table table;
    auto in = from.walk();
    const gp::Pass pass(from.count[0], from.rows, in);
    const uint32_t bins = to.count[0], copies = pass.columns == 1 ? COPIES : 1;
    if ((bins + 1) * copies > table.rows) return false;
    gp::clear(table.at, (bins + 1) * copies * table.lanes, 0);
    const uint32_t bin_bytes = copies * table.row_bytes();
    const size_t most = gp::length(copies * table.lanes);
    const gp::Vector place = __riscv_vsll(__riscv_vid_v_u32m8(most), 2, most);
    for (uint32_t i = 0; i < pass.columns; i++, in.next())
        for (uint32_t p = 0, vl; p < pass.rows; p += vl) {
            vl = gp::length(pass.rows - p < most ? pass.rows - p : most);
            const gp::Vector bin = __riscv_vminu(gp::fetch(&in[p], vl), bins, vl);
            const gp::Vector at = __riscv_vmadd(bin, bin_bytes, place, vl);
            const gp::Vector count = __riscv_vadd(__riscv_vluxei32(table.at, at, vl), 1, vl);
            __riscv_vsuxei32(table.at, at, count, vl);
        }
    auto out = to.walk();
    for (uint32_t bin = 0; bin < bins; bin++, out.next()) {
        vuint32m1_t sum = __riscv_vmv_v_x_u32m1(0, from.rows);
        for (uint32_t c = 0; c < copies; c++)
            sum = __riscv_vadd(sum, __riscv_vle32_v_u32m1(table[bin * copies + c], from.rows), from.rows);
        __riscv_vse32(out.at, sum, from.rows);
    }
    return true;
}
#endif

GP_ENTRY(histogram) {
    const gp::Columns<const uint32_t> from(GP_SRC0);
    const gp::Columns<uint32_t> to(GP_DST);
#ifdef __riscv_vector
    if (by_lanes(from, to)) return 0;
#endif
    const uint32_t bins = to.count[0], columns = from.count[0], rows = from.rows;
    for (uint32_t p = 0; p < rows; p++) {
#ifdef __riscv_vector /* no more room than that, so it counts where counts go */
        const gp::Walk<uint32_t> counts = {&to[0][p], to.step[0]};
#else
        const gp::Walk<uint32_t> counts = {gp::scratch, 1};
#endif
        for (uint32_t bin = 0; bin < bins; bin++) counts[bin * uint32_t(counts.step)] = 0;
        auto in = from.walk();
        for (uint32_t i = 0; i < columns; i++, in.next()) {
            const uint32_t bin = in[p];
            if (bin < bins) counts[bin * uint32_t(counts.step)]++;
        }
#ifndef __riscv_vector
        auto out = to.walk();
        for (uint32_t bin = 0; bin < bins; bin++, out.next()) out[p] = counts[bin];
#endif
    }
    return 0;
}
