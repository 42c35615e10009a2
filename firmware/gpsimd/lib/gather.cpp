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

#ifdef __riscv_vector
/* Groups of eight columns of all partitions, that lie side by side in all operands; gives how many columns that were,
 * none if local memory has no room. Each core leaves its own in a half of shared memory and copies those of the others
 * to a table in local memory, where lanes look them up at once; behind them is `fill`. A piece has a half, and one of
 * two tables. The order of these instructions keeps rows of shared memory on their way while indices become places and
 * words are looked up; a core's own columns of the next piece go to its half and table meanwhile. v0: bytes of a word's
 * column in its group; v8: of another core; v16: index, then place; v24: own columns, or words found. What is done once
 * for a piece is as small as can be, for the image has little room. */
#define GP_NEXT_CORE                     \
    "add %[from], %[from], %[apart]\n"   \
    "bne %[from], %[all], 9f\n"          \
    "li %[from], 0\n"                    \
    "9: add %[t], %[source], %[from]\n"  \
    "vle32.v v8, (%[t])\n"
[[gnu::noinline, clang::minsize]] static uint32_t by_groups(const uint32_t *in, const uint32_t *at, uint32_t *out,
                                                            uint32_t columns, uint32_t width, uint32_t fill) {
    const gp::Table table;
    const uint32_t lanes = table.lanes, group = 8 * lanes, cores = width / lanes, step = 4 * group;
    const uint32_t piece = gp::SHARED_WORDS / 2 / cores & -group; /* words of a core */
    const uint32_t words = (cores + 1) * piece;                   /* of a table */
    if (cores < 2 || 2 * words > table.rows * lanes) return 0;
    const uint32_t at_most = piece / group, apart = 4 * piece, all = cores * apart, own = gp_core() * apart;
    const uint32_t first = own + apart == all ? 0 : own + apart;
    gp::clear(table.at, 2 * words, fill);
    const uint32_t *const end = in + columns / 8 * group;
    uint32_t now = uint32_t(gp::shared()), next = now + 2 * gp::SHARED_WORDS;
    uint32_t tab = uint32_t(table.at), other = tab + 4 * words;
    for (uint32_t i = 0; i < apart && in != end; i += step, in += group) {
        const gp::Vector mine = gp::fetch(in, group);
        gp::put(reinterpret_cast<uint32_t *>(now + own + i), mine, group);
        gp::put(reinterpret_cast<uint32_t *>(tab + own + i), mine, group);
    }
    for (uint32_t left = columns / 8, groups; left; left -= groups) {
        groups = left < at_most ? left : at_most;
        gp::meet();
        uint32_t more = groups, source = now, to = tab, give = next + own, keep = other + own, from = first, k, t;
        asm volatile("vsetvli zero, %[group], e32, m8, ta, ma\n"
                     "add %[t], %[source], %[from]\n"
                     "vle32.v v8, (%[t])\n"
                     "vid.v v0\n"
                     "vsll.vi v0, v0, 2\n"
                     "vand.vx v0, v0, %[column]\n"
                     "1: add %[t], %[to], %[from]\n"
                     "vse32.v v8, (%[t])\n"
                     "vle32.v v16, (%[at])\n"
                     "add %[at], %[at], %[step]\n"
                     "mv %[k], %[others]\n"
                     "beqz %[k], 2f\n" GP_NEXT_CORE
                     "2: vminu.vx v16, v16, %[width]\n"
                     "vsrl.vx v24, v16, %[log]\n"
                     "vmadd.vx v16, %[four], v0\n"
                     "vmacc.vx v16, %[beyond], v24\n"
                     "beq %[in], %[end], 4f\n"
                     "vle32.v v24, (%[in])\n"
                     "add %[in], %[in], %[step]\n"
                     "beqz %[k], 3f\n"
                     "add %[t], %[to], %[from]\n"
                     "vse32.v v8, (%[t])\n"
                     "addi %[k], %[k], -1\n" GP_NEXT_CORE
                     "3: vse32.v v24, (%[give])\n"
                     "add %[give], %[give], %[step]\n"
                     "vse32.v v24, (%[keep])\n"
                     "add %[keep], %[keep], %[step]\n"
                     "4: beqz %[k], 6f\n"
                     "5: add %[t], %[to], %[from]\n"
                     "vse32.v v8, (%[t])\n"
                     "addi %[k], %[k], -1\n"
                     "beqz %[k], 6f\n" GP_NEXT_CORE
                     "j 5b\n"
                     "6: addi %[more], %[more], -1\n"
                     "beqz %[more], 7f\n"
                     "mv %[from], %[first]\n"
                     "add %[source], %[source], %[step]\n"
                     "add %[t], %[source], %[from]\n"
                     "vle32.v v8, (%[t])\n"
                     "7: vluxei32.v v24, (%[to]), v16\n"
                     "add %[to], %[to], %[step]\n"
                     "vse32.v v24, (%[out])\n"
                     "add %[out], %[out], %[step]\n"
                     "bnez %[more], 1b"
                     : [in] "+&r"(in), [at] "+&r"(at), [out] "+&r"(out), [more] "+&r"(more),
                       [source] "+&r"(source), [to] "+&r"(to), [give] "+&r"(give), [keep] "+&r"(keep),
                       [from] "+&r"(from), [k] "=&r"(k), [t] "=&r"(t)
                     : [group] "r"(group), [step] "r"(step), [others] "r"(cores - 2), [width] "r"(width),
                       [end] "r"(end), [log] "r"(__builtin_ctz(lanes)), [four] "r"(4),
                       [beyond] "r"(apart - 4 * lanes), [apart] "r"(apart), [all] "r"(all), [first] "r"(first),
                       [column] "r"(-4 * lanes)
                     : "memory", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13",
                       "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27",
                       "v28", "v29", "v30", "v31");
        const uint32_t half = now, table_of_it = tab;
        now = next, next = half, tab = other, other = table_of_it;
    }
    return columns & -8u;
}
#endif

/* All cores put as many columns as fit into shared memory, then take from there. */
[[gnu::noinline, clang::minsize]] static void by_partition(const Columns<const uint32_t> &from,
                                                           const Columns<const uint32_t> &index,
                                                           const Columns<uint32_t> &to, uint32_t fill) {
    const uint32_t width = from.partitions, piece = gp::SHARED_WORDS / 2 / width;
    const uint32_t rows = to.rows, given = from.rows, number = from.number;
    auto in = from.walk(), at = index.walk();
    auto out = to.walk();
    uint32_t first = 0;
#ifdef __riscv_vector
    const uint32_t lanes = gp_lanes();
    if (width == gp_run_cores() * lanes && to.partitions == width && uint32_t(in.step) == lanes &&
        uint32_t(at.step) == lanes && uint32_t(out.step) == lanes) {
        first = by_groups(in.at, at.at, out.at, from.count[0], width, fill);
        in.at += first * lanes, at.at += first * lanes, out.at += first * lanes;
        if (first) gp::meet(); /* others may read what is written now */
    }
#endif
    for (uint32_t half = 0; first < from.count[0]; first += piece, half ^= gp::SHARED_WORDS / 2) {
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
        gp::meet();
        column = gp::shared(half);
#ifdef __riscv_vector
        const gp::Table table; /* of all words, if it has room: lanes look them up at once there */
        const uint32_t words = columns * width;
        if (words <= table.rows * table.lanes) gp::copy_words(table.at, column, words), column = table.at;
#endif
        for (i = 0; i < columns; i++, at.next(), out.next(), column += width) {
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
