// dst[p, i] = src0[0, i] for all partitions of dst; any 32-bit elements. By way of shared memory.
#include "lanes.h"

#ifdef __riscv_vector
/* Words to columns of all lanes that lie side by side: eight at a time, a register each. Up to seven words behind the
 * last are read. */
static void spread(uint32_t *to, const uint32_t *from, uint32_t columns) {
    constexpr uint32_t AT_ONCE = 8;
    const size_t lanes = gp_lanes(), most = AT_ONCE * lanes, few = lanes < AT_ONCE ? lanes : AT_ONCE;
    const size_t behind = lanes < AT_ONCE ? AT_ONCE / 2 : 0, n4 = 4 - behind, n6 = 6 - behind;
    for (size_t left = columns * lanes, vl; left; left -= vl, from += AT_ONCE, to += most) {
        const vuint32m1_t a = __riscv_vle32_v_u32m1(from, few), b = __riscv_vle32_v_u32m1(from + behind, few);
        vl = left < most ? left : most;
        gp::put(to,
                __riscv_vcreate_v_u32m1_u32m8(
                    __riscv_vrgather(a, size_t(0), lanes), __riscv_vrgather(a, size_t(1), lanes),
                    __riscv_vrgather(a, size_t(2), lanes), __riscv_vrgather(a, size_t(3), lanes),
                    __riscv_vrgather(b, n4, lanes), __riscv_vrgather(b, n4 + 1, lanes),
                    __riscv_vrgather(b, n6, lanes), __riscv_vrgather(b, n6 + 1, lanes)),
                vl);
    }
}
#endif

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
        uint32_t done = 0;
#ifdef __riscv_vector
        const gp::OneLane lane(in.at);
        if (from.rows && uint32_t(in.step) == lane.lanes)
            for (uint32_t some; done < columns; done += some, in.at += some * lane.lanes) {
                some = columns - done < gp::SCRATCH_WORDS ? columns - done : gp::SCRATCH_WORDS;
                lane.take(in.at, some);
                gp::copy_words(row + done, gp::scratch, some);
            }
#endif
        for (; done < columns && from.rows; done++, in.next()) row[done] = in[0];
        gp::meet();
        done = 0;
#ifdef __riscv_vector
        if (rows == lane.lanes && uint32_t(out.step) == rows) {
            spread(out.at, row, columns);
            out.at += columns * rows;
            done = columns;
        }
#endif
        for (; done < columns && rows; done++, out.next()) {
            const uint32_t value = row[done];
            GP_LANES
            for (uint32_t p = 0; p < rows; p++) out[p] = value;
        }
    }
    return 0;
}
