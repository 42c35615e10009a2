// dst[p, i] = src0[p, src1[p, i]], or by indices that the partitions of a core share, or src0[src1[p, i], i].
// Any 32-bit elements; an index outside gives fill.
#include "lanes.h"

using gp::Columns;

#ifdef __riscv_vector
/* From a copy in local memory, behind whose columns is one of `fill`; false if it has no room. What comes next is
 * made ready while words are looked up. */
static bool by_table(const Columns<const uint32_t> &from, const Columns<const uint32_t> &index,
                     const Columns<uint32_t> &to, uint32_t fill) {
    const gp::Table table;
    const uint32_t size = from.count[0], row_bytes = table.row_bytes();
    if (size >= table.rows) return false;
    if (!to.rows) return true;
    gp::copy(table.walk(), from.walk(), size, from.rows);
    gp::clear(table[size], table.lanes, fill);
    auto at = index.walk();
    auto out = to.walk();
    const gp::Pass pass(to.count[0], to.rows, at, out);
    const size_t vl = gp::length(pass.rows);
    const gp::Vector lane = gp::lane_bytes(vl);
    for (uint32_t i = 0; i < pass.columns; i++, at.next(), out.next()) {
        const uint32_t *in = at.at;
        uint32_t *put = out.at;
        const uint32_t *const end = in + pass.rows - vl; /* the last that are whole begin here, or before */
        gp::Vector place = __riscv_vmadd(__riscv_vminu(gp::fetch(in, vl), size, vl), row_bytes, lane, vl);
#pragma clang loop unroll_count(2)
        for (; in + vl <= end; put += vl) {
            in += vl;
            gp::before(in);
            gp::Vector next = __riscv_vminu(gp::fetch(in, vl), size, vl);
            gp::before(next);
            gp::Vector found = __riscv_vluxei32(table.at, place, vl);
            gp::before(found);
            place = __riscv_vmadd(next, row_bytes, lane, vl);
            gp::put(put, found, vl);
        }
        gp::put(put, __riscv_vluxei32(table.at, place, vl), vl);
        in += vl, put += vl;
        if (const size_t rest = uint32_t(end - in) + vl) {
            const gp::Vector last = __riscv_vminu(gp::fetch(in, rest), size, rest);
            gp::put(put, __riscv_vluxei32(table.at, __riscv_vmadd(last, row_bytes, lane, rest), rest), rest);
        }
    }
    return true;
}
#endif

static void by_column(const Columns<const uint32_t> &from, const Columns<const uint32_t> &index,
                      const Columns<uint32_t> &to, uint32_t fill) {
#ifdef __riscv_vector
    if (by_table(from, index, to, fill)) return;
#endif
    const uint32_t columns = to.count[0], rows = to.rows, size = from.count[0];
    const uint32_t *in = from[0];
    const int32_t step = from.step[0];
    auto at = index.walk();
    auto out = to.walk();
    for (uint32_t i = 0; i < columns; i++, at.next(), out.next())
        GP_LANES
        for (uint32_t p = 0; p < rows; p++) {
            const uint32_t column = at[p];
            out[p] = column < size ? in[int32_t(column) * step + int32_t(p)] : fill;
        }
}

/* Index i of a core is in its partition i mod L, column i / L. */
static void by_shared_column(const Columns<const uint32_t> &from, const Columns<const uint32_t> &index,
                             const Columns<uint32_t> &to, uint32_t fill) {
    const uint32_t columns = to.count[0], rows = to.rows, size = from.count[0];
    auto at = index.walk();
    auto out = to.walk();
    for (uint32_t i = 0, lane = 0; i < columns && rows; i++, out.next()) {
        const uint32_t column = at[lane];
        const uint32_t *in = from[column < size ? column : 0];
#ifdef __riscv_vector
        vuint32m1_t value = __riscv_vmv_v_x_u32m1(fill, rows);
        if (column < size) value = __riscv_vle32_v_u32m1(in, rows);
        __riscv_vse32(out.at, value, rows);
#else
        for (uint32_t p = 0; p < rows; p++) out[p] = column < size ? in[p] : fill;
#endif
        if (++lane == rows) lane = 0, at.next();
    }
}

/* All cores put as many columns as fit into shared memory, then take from there. */
static void by_partition(const Columns<const uint32_t> &from, const Columns<const uint32_t> &index,
                         const Columns<uint32_t> &to, uint32_t fill) {
    const uint32_t width = from.partitions, piece = gp::SHARED_WORDS / 2 / width;
    const uint32_t rows = to.rows, given = from.rows, number = from.number;
    auto in = from.walk(), at = index.walk();
    auto out = to.walk();
    for (uint32_t first = 0, half = 0; first < from.count[0]; first += piece, half ^= gp::SHARED_WORDS / 2) {
        const uint32_t left = from.count[0] - first, columns = left < piece ? left : piece;
        uint32_t *column = gp::shared(half);
        uint32_t i;
        for (i = 0; i < columns; i++, in.next(), column += width) {
#ifdef __riscv_vector
            __riscv_vse32(column + number, __riscv_vle32_v_u32m1(in.at, given), given);
#else
            for (uint32_t p = 0; p < given; p++) column[number + p] = in[p];
#endif
        }
        gp_barrier();
        column = gp::shared(half);
        i = 0;
#ifdef __riscv_vector
        const gp::Table table; /* of all words, if it has room: lanes look them up at once there */
        const uint32_t words = columns * width;
        if (words <= table.rows * table.lanes) gp::copy_words(table.at, column, words), column = table.at;
        if (uint32_t(at.step) == rows && uint32_t(out.step) == rows && rows == table.lanes) {
            const size_t most = gp::length(8 * rows);
            const gp::Vector number = __riscv_vid_v_u32m8(most);
            const gp::Vector base =
                __riscv_vmul(__riscv_vsrl(number, uint32_t(__builtin_ctz(rows)), most), 4 * width, most);
            for (; i + 8 <= columns; i += 8, at.at += most, out.at += most, column += 8 * width) {
                const gp::Vector partition = gp::fetch(at.at, most);
                const gp::Mask there = __riscv_vmsltu(partition, width, most);
                const gp::Vector byte = __riscv_vmadd(partition, uint32_t(4), base, most);
                gp::put(out.at, __riscv_vluxei32_mu(there, gp::all(fill, most), column, byte, most), most);
            }
        }
#endif
        for (; i < columns; i++, at.next(), out.next(), column += width) {
#ifdef __riscv_vector
            const vuint32m1_t partition = __riscv_vle32_v_u32m1(at.at, rows);
            const vbool32_t there = __riscv_vmsltu(partition, width, rows);
            const vuint32m1_t none = __riscv_vmv_v_x_u32m1(fill, rows), byte = __riscv_vsll(partition, 2, rows);
            __riscv_vse32(out.at, __riscv_vluxei32_mu(there, none, column, byte, rows), rows);
#else
            for (uint32_t p = 0; p < rows; p++) {
                const uint32_t partition = at[p];
                out[p] = partition < width ? column[partition] : fill;
            }
#endif
        }
    }
}

GP_ENTRY(gather) {
    const Columns<const uint32_t> from(GP_SRC0), index(GP_SRC1);
    const Columns<uint32_t> to(GP_DST);
    const uint32_t fill = GP_OPERATOR(GATHER_FILL), mode = GP_OPERATOR(GATHER_MODE);
    if (mode == PLEXUS_GATHER_COLUMNS) by_column(from, index, to, fill);
    else if (mode == PLEXUS_GATHER_SHARED) by_shared_column(from, index, to, fill);
    else by_partition(from, index, to, fill);
    return 0;
}
