// dst[p, :] = columns of src0[p, :] that are not 0, ascending, then -1; src1[p, 0] = how many there are, written too,
// though only as many are in dst as it has columns. FP32 (-0 is 0, a NaN is not) or 32-bit integers.
#include "lanes.h"

#ifdef __riscv_vector
/* All lanes at once: each stores its columns to rows of its own in local memory, those without room to one behind them.
 * False if that has no room for them. */
static bool by_lanes(const gp::Columns<const uint32_t> &from, const gp::Columns<int32_t> &columns,
                     const gp::Columns<int32_t> &found, uint32_t shift) {
    const gp::Table table;
    const uint32_t rows = from.rows, room = columns.count[0], row_bytes = table.row_bytes();
    if (room >= table.rows) return false;
    gp::clear(table.at, room * table.lanes, uint32_t(-1));
    auto in = from.walk();
    const size_t vl = __riscv_vsetvl_e32m1(rows);
    const vuint32m1_t lane = __riscv_vsll(__riscv_vid_v_u32m1(vl), 2, vl);
    const vuint32m1_t end = __riscv_vadd(lane, room * row_bytes, vl);
    vuint32m1_t at = lane, count = __riscv_vmv_v_x_u32m1(0, vl);
    for (uint32_t i = 0; i < from.count[0]; i++, in.next()) {
        const vbool32_t is = __riscv_vmsne(__riscv_vsll(__riscv_vle32_v_u32m1(in.at, vl), shift, vl), 0, vl);
        count = __riscv_vadd_mu(is, count, count, 1, vl);
        __riscv_vsuxei32(is, table.at, at, __riscv_vmv_v_x_u32m1(i, vl), vl);
        at = __riscv_vminu(__riscv_vadd_mu(is, at, at, row_bytes, vl), end, vl);
    }
    auto out = columns.walk();
    gp::copy({reinterpret_cast<uint32_t *>(out.at), out.step}, {table.at, int32_t(table.lanes)}, room, rows);
    __riscv_vse32(reinterpret_cast<uint32_t *>(found[0]), count, vl);
    return true;
}
#endif

GP_ENTRY(nonzero) {
    const gp::Columns<const uint32_t> from(GP_SRC0);
    const gp::Columns<int32_t> columns(GP_DST), found(GP_SRC1);
    const uint32_t shift = from.dtype == PLEXUS_DTYPE_FP32; // the sign leaves
    const uint32_t size = from.count[0], rows = from.rows;
    const int32_t room = int32_t(columns.count[0]);
#ifdef __riscv_vector
    if (by_lanes(from, columns, found, shift)) return 0;
#endif
    for (uint32_t p = 0; p < rows; p++) {
        auto in = from.walk();
        auto out = columns.walk();
        int32_t count = 0;
        for (uint32_t i = 0; i < size; i++, in.next()) {
            if (!(in[p] << shift)) continue;
            if (count++ < room) out[p] = int32_t(i), out.next();
        }
        for (int32_t i = count; i < room; i++, out.next()) out[p] = -1;
        found[0][p] = count;
    }
    return 0;
}
