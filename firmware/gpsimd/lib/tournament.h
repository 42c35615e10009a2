/* The k largest elements of all lanes at once, on cores with vectors. */
#ifndef PLEXUS_LIB_TOURNAMENT_H
#define PLEXUS_LIB_TOURNAMENT_H

#include "best.h"
#include "lanes.h"

#ifdef __riscv_vector

namespace gp {

/* What a tournament compares: integers with sign. 32-bit integers as they are, FP32 by its bits, which is quick, and right
 * if there is no NaN and all that win are above 0, or any FP32 by keys. */
enum Keys { INTEGERS, POSITIVES, ANY_FLOATS };

/* Less than all that can win, for columns that are not there and for those that have won. */
constexpr int32_t nothing_of(Keys keys) { return keys == POSITIVES ? 0 : INT32_MIN; }
constexpr int32_t mark_of(Keys keys) { return keys == POSITIVES ? -1 : INT32_MIN; }

/* Keys of any FP32: zeros are 0, every NaN is one above infinity. */
inline SignedVector float_keys(Vector bits, size_t vl) {
    constexpr int32_t NAN = int32_t(Float::INFINITY_BITS) + 1;
    SignedVector value = with_sign(bits);
    value = __riscv_vrsub_mu(__riscv_vmslt(value, 0, vl), value, value, INT32_MIN, vl);
    const Mask nan = __riscv_vmsgtu(bits, Float::SIGN | Float::INFINITY_BITS, vl);
    return __riscv_vmerge(__riscv_vmin(value, NAN, vl), NAN, nan, vl);
}

/* What is computed here and not elsewhere, so that it is done while what is beside it waits. */
template <typename T>
[[gnu::always_inline]] inline T here(T value) {
    asm volatile("" : "+vr"(value) : : "memory");
    return value;
}

/* As many elements as registers hold. */
constexpr size_t FULL = size_t(-1);

constexpr uint32_t turned(uint32_t r) { return r >> 2 | (r & 2) | (r & 1) << 2; }

/* Eight that grow by `step`, each in its register. */
inline Vector eight(vuint32m1_t first, uint32_t step) {
    return __riscv_vcreate_v_u32m1_u32m8(
        first, __riscv_vadd(first, turned(1) * step, FULL), __riscv_vadd(first, turned(2) * step, FULL),
        __riscv_vadd(first, turned(3) * step, FULL), __riscv_vadd(first, turned(4) * step, FULL),
        __riscv_vadd(first, turned(5) * step, FULL), __riscv_vadd(first, turned(6) * step, FULL),
        __riscv_vadd(first, turned(7) * step, FULL));
}
/* Of eight elements of each lane the place of the largest, itself, and the largest of the others. Register r has element
 * `turned(r)`: halves are neighbours, so the lower of equal ones wins. */
template <bool NEXT>
[[gnu::always_inline]] inline vuint32m1_t winner(SignedVector key, Vector at, vint32m1_t &best, vint32m1_t &second) {
    const vint32m4_t a = __riscv_vget_i32m4(key, 0), b = __riscv_vget_i32m4(key, 1);
    const vbool8_t left = __riscv_vmsge(a, b, FULL);
    const vint32m4_t high = __riscv_vmax(a, b, FULL);
    vint32m4_t low = high;
    if (NEXT) low = __riscv_vmin(a, b, FULL);
    const vuint32m4_t at4 = __riscv_vmerge(__riscv_vget_u32m4(at, 1), __riscv_vget_u32m4(at, 0), left, FULL);

    const vint32m2_t c = __riscv_vget_i32m2(high, 0), d = __riscv_vget_i32m2(high, 1);
    const vbool16_t left2 = __riscv_vmsge(c, d, FULL);
    const vint32m2_t high2 = __riscv_vmax(c, d, FULL);
    vint32m2_t low2 = high2;
    if (NEXT) {
        low2 = __riscv_vmax(__riscv_vget_i32m2(low, 0), __riscv_vget_i32m2(low, 1), FULL);
        low2 = __riscv_vmax(low2, __riscv_vmin(c, d, FULL), FULL);
    }
    const vuint32m2_t at2 = __riscv_vmerge(__riscv_vget_u32m2(at4, 1), __riscv_vget_u32m2(at4, 0), left2, FULL);

    const vint32m1_t e = __riscv_vget_i32m1(high2, 0), f = __riscv_vget_i32m1(high2, 1);
    const vbool32_t left1 = __riscv_vmsge(e, f, FULL);
    best = __riscv_vmax(e, f, FULL);
    if (NEXT) {
        second = __riscv_vmax(__riscv_vget_i32m1(low2, 0), __riscv_vget_i32m1(low2, 1), FULL);
        second = __riscv_vmax(second, __riscv_vmin(e, f, FULL), FULL);
        asm volatile("" : "+vr"(best), "+vr"(second)); /* here, so that nothing else must be kept */
    }
    return __riscv_vmerge(__riscv_vget_u32m1(at2, 1), __riscv_vget_u32m1(at2, 0), left1, FULL);
}

/* Of two halves, the larger element of each place. */
inline vint32m4_t larger(vint32m8_t of) {
    return __riscv_vmax(__riscv_vget_i32m4(of, 0), __riscv_vget_i32m4(of, 1), FULL);
}
inline vint32m2_t larger(vint32m4_t of) {
    return __riscv_vmax(__riscv_vget_i32m2(of, 0), __riscv_vget_i32m2(of, 1), FULL);
}
inline vint32m1_t larger(vint32m2_t of) {
    return __riscv_vmax(__riscv_vget_i32m1(of, 0), __riscv_vget_i32m1(of, 1), FULL);
}

/* A tree in local memory: 8 blocks of 8 groups of 8 columns. A row for the largest of a block, then for each group one
 * for its largest and those of its columns. A ninth block is what won among the columns before. A place is bytes. */
class Tournament {
  public:
    const uint32_t k;

    explicit Tournament(uint32_t k_) : k(k_), table(), row(table.row_bytes()) {}

    static constexpr uint32_t FLAT = 64; /* columns that are a block, which is quick */

    /* Whether it can be held: k is at most 8, and there is room. */
    bool fits() const { return k <= WAYS && table.rows >= ROWS; }

    /* What won, the largest first, and their columns. */
    Walk<const uint32_t> keys() const { return {table[KEYS], int32_t(table.lanes)}; }
    Walk<uint32_t> columns() const { return {table[FOUND], int32_t(table.lanes)}; }

    /* False if these keys do not say which elements are larger. Columns lie side by side. */
    [[gnu::noinline]] bool run(const uint32_t *in, uint32_t columns, Keys keys) {
        const int32_t nothing = nothing_of(keys);
        uint32_t most_bits = 0;
        for (uint32_t first = 0; first < columns; first += COLUMNS, in += COLUMNS * table.lanes) {
            const uint32_t left = columns - first, some = left < COLUMNS ? left : COLUMNS;
            const bool deep = first || left > WAYS * WAYS;
            const uint32_t whole = keys == ANY_FLOATS ? 0 : some / FLAT, blocks = deep ? WAYS : 1;
            for (uint32_t b = 0, bits; b < blocks; b = b < whole ? whole : blocks) {
                uint32_t *const block = table[b * BLOCK];
                if (b < whole) bits = fill(block, whole, in, table.lanes, nothing);
                else {
                    part(block, blocks - b, in + b * FLAT * table.lanes, some - b * FLAT, keys);
                    bits = fill(block, blocks - b, block + 2 * table.lanes, table.lanes, nothing);
                }
                if (bits > most_bits) most_bits = bits;
            }
            keep(nothing, first);
            rounds(mark_of(keys), deep);
            find(first);
        }
        if (keys == ANY_FLOATS) return true;
        const int32_t high = fold(KEYS, 0), low = ~fold(KEYS + k - 1, -1);
        if (keys == INTEGERS) return low != nothing;
        return most_bits <= (Float::SIGN | Float::INFINITY_BITS) && high <= int32_t(Float::INFINITY_BITS) && low > 0;
    }

  private:
    static constexpr uint32_t WAYS = 8, GROUP = 1 + WAYS, BLOCK = 1 + WAYS * GROUP, COLUMNS = WAYS * WAYS * WAYS,
                              KEPT = WAYS * BLOCK, KEYS = KEPT + BLOCK, PLACES = KEYS + WAYS, FOUND = PLACES + WAYS,
                              BLOCKS = FOUND + WAYS, ROWS = BLOCKS + WAYS;

    int32_t *at_row(uint32_t r) const { return reinterpret_cast<int32_t *>(table[r]); }

    /* Largest of a row whose elements are turned by `flip`. */
    int32_t fold(uint32_t r, int32_t flip) const {
        const vint32m1_t of = __riscv_vxor(__riscv_vle32_v_i32m1(at_row(r), FULL), flip, FULL);
        return __riscv_vmv_x(__riscv_vredmax(of, of, FULL));
    }

    /* Keys of these columns to their places, from a block on; there are none behind them. */
    [[gnu::noinline]] void part(uint32_t *block, uint32_t blocks, const uint32_t *in, uint32_t columns, Keys keys) const {
        const uint32_t lanes = table.lanes;
        for (; blocks; blocks--, block += lanes)
            for (uint32_t g = 0; g < WAYS; g++, block += GROUP * lanes, in += WAYS * lanes) {
                put(block + 2 * lanes, all(uint32_t(nothing_of(keys)), FULL), FULL);
                if (!columns) continue;
                const uint32_t some = columns < WAYS ? columns : WAYS;
                const size_t vl = length(some * lanes);
                const Vector bits = fetch(in, vl);
                put(block + 2 * lanes, keys == ANY_FLOATS ? without_sign(float_keys(bits, vl)) : bits, vl);
                columns -= some;
            }
    }

    /* The tree of all of these blocks, whose columns lie side by side, or are where they belong; gives the largest of
     * their bits. Two groups x and y at a time: the order of these instructions is what makes it quick, a step of one
     * while the other waits, what is stored and loaded next to it. v8, v16: x, y; v4, v28: the larger of their halves,
     * of the y before; v3: the largest of the block; v24: of bits. */
    [[gnu::noinline]] static uint32_t fill(uint32_t *block, uint32_t blocks, const uint32_t *from, uint32_t lanes,
                                           int32_t nothing) {
        const uint32_t row = 4 * lanes, there = from == block + 2 * lanes, step = (there ? GROUP : WAYS) * row;
        const uint32_t *const end = there ? nullptr : from + (blocks * WAYS - 1) * WAYS * lanes; /* nothing is behind */
        uint32_t result, group, before, at;
        asm volatile("vsetvli %[x], zero, e32, m8, ta, ma\n"
                     "vmv.v.i v24, 0\n"
                     "vl8re32.v v8, (%[from])\n"
                     "1: vsetvli %[x], zero, e32, m4, ta, ma\n"
                     "vmv.v.x v28, %[nothing]\n"
                     "vsetvli %[x], zero, e32, m1, ta, ma\n"
                     "vmv.v.x v3, %[nothing]\n"
                     "mv %[before], %[block]\n"
                     "add %[group], %[block], %[row]\n"
                     "add %[block], %[block], %[size]\n"
                     "beqz %[there], 2f\n"
                     "add %[from], %[group], %[row]\n"
                     "vl8re32.v v8, (%[from])\n"
                     "2: vsetvli %[x], zero, e32, m4, ta, ma\n"
                     "vmaxu.vv v24, v24, v8\n"
                     "add %[at], %[group], %[row]\n"
                     "add %[from], %[from], %[step]\n"
                     "vl8re32.v v16, (%[from])\n"
                     "vmaxu.vv v24, v24, v12\n"
                     "vs8r.v v8, (%[at])\n"
                     "add %[at], %[at], %[nine]\n"
                     "beq %[from], %[end], 3f\n"
                     "add %[from], %[from], %[step]\n"
                     "3: vmax.vv v4, v8, v12\n"
                     "vmaxu.vv v24, v24, v16\n"
                     "vl8re32.v v8, (%[from])\n"
                     "vmaxu.vv v24, v24, v20\n"
                     "vs8r.v v16, (%[at])\n"
                     "vsetvli %[x], zero, e32, m2, ta, ma\n"
                     "vmax.vv v28, v28, v30\n"
                     "vmax.vv v4, v4, v6\n"
                     "vsetvli %[x], zero, e32, m1, ta, ma\n"
                     "vmax.vv v2, v28, v29\n"
                     "vsetvli %[x], zero, e32, m4, ta, ma\n"
                     "vmax.vv v28, v16, v20\n"
                     "vsetvli %[x], zero, e32, m1, ta, ma\n"
                     "vmax.vv v1, v4, v5\n"
                     "vmax.vv v3, v3, v2\n"
                     "vs1r.v v2, (%[before])\n"
                     "add %[before], %[group], %[nine]\n"
                     "vs1r.v v1, (%[group])\n"
                     "add %[group], %[before], %[nine]\n"
                     "vmax.vv v3, v3, v1\n"
                     "bne %[group], %[block], 2b\n"
                     "vsetvli %[x], zero, e32, m2, ta, ma\n"
                     "vmax.vv v28, v28, v30\n"
                     "vsetvli %[x], zero, e32, m1, ta, ma\n"
                     "vmax.vv v28, v28, v29\n"
                     "vs1r.v v28, (%[before])\n"
                     "vmax.vv v3, v3, v28\n"
                     "sub %[at], %[block], %[size]\n"
                     "vs1r.v v3, (%[at])\n"
                     "addi %[blocks], %[blocks], -1\n"
                     "bnez %[blocks], 1b\n"
                     "vmv.v.i v0, 0\n"
                     "vsetvli %[x], zero, e32, m4, ta, ma\n"
                     "vredmaxu.vs v0, v24, v0\n"
                     "vmv.x.s %[x], v0\n"
                     : [x] "=&r"(result), [group] "=&r"(group), [before] "=&r"(before), [at] "=&r"(at), [from] "+r"(from),
                       [block] "+r"(block), [blocks] "+r"(blocks)
                     : [nothing] "r"(nothing), [row] "r"(row), [size] "r"(BLOCK * row), [there] "r"(there), [step] "r"(step),
                       [end] "r"(end), [nine] "r"(GROUP * row)
                     : "memory", "vtype", "vl", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11",
                       "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25",
                       "v26", "v27", "v28", "v29", "v30", "v31");
        return result;
    }

    /* What has won so far is the ninth block. */
    void keep(int32_t nothing, bool some) {
        clear(table[KEPT], some ? BLOCK * table.lanes : table.lanes, uint32_t(nothing));
        if (!some) return;
        copy({table[KEPT + 2], int32_t(table.lanes)}, {table[KEYS], int32_t(table.lanes)}, k, table.lanes);
        const vint32m1_t high = __riscv_vle32_v_i32m1(at_row(KEYS), FULL);
        __riscv_vse32(at_row(KEPT), high, FULL);
        __riscv_vse32(at_row(KEPT + 1), high, FULL);
    }

    /* Whoever wins becomes nothing, and its group and block have the next in their rows. What is in scalar registers is
     * computed before: a core stands still when it loads a scalar. */
    [[gnu::noinline]] void rounds(int32_t is_nothing, bool deep) {
        const uint32_t step = row, lanes = table.lanes;
        uint32_t *const of_blocks = table.at, *const of_groups = of_blocks + lanes, *const of_columns = of_groups + lanes;
        uint32_t *const blocks = table[BLOCKS], *place = table[PLACES];
        const int32_t *const of_kept = reinterpret_cast<int32_t *>(of_blocks + KEPT * lanes);
        const uint32_t *const end = place + k * lanes;
        const vuint32m1_t lane = __riscv_vsll(__riscv_vid_v_u32m1(FULL), 2, FULL);
        const vint32m1_t nothing = __riscv_vmv_v_x_i32m1(is_nothing, FULL);
        put(blocks, eight(lane, BLOCK * step), FULL);
        const vuint32m1_t kept_at = here(__riscv_vadd(lane, KEPT * step, FULL));
        for (; place != end; place += lanes) {
            vint32m1_t best = nothing, others = nothing, next = nothing;
            vuint32m1_t block;
            if (deep) {
                const Vector at = fetch(blocks, FULL);
                const vint32m1_t kept = __riscv_vle32_v_i32m1(of_kept, FULL);
                block = winner<false>(with_sign(__riscv_vluxei32(of_blocks, at, FULL)), at, best, next);
                block = __riscv_vmerge(block, kept_at, __riscv_vmsge(kept, best, FULL), FULL);
            } else block = __riscv_vle32_v_u32m1(blocks, FULL);
            Vector at = eight(block, GROUP * step);
            const vuint32m1_t group = winner<true>(with_sign(__riscv_vluxei32(of_groups, at, FULL)), at, best, others);
            at = eight(group, step);
            const vuint32m1_t column = winner<true>(with_sign(__riscv_vluxei32(of_columns, at, FULL)), at, best, next);
            __riscv_vsuxei32(reinterpret_cast<int32_t *>(of_groups), group, next, FULL);
            if (deep)
                __riscv_vsuxei32(reinterpret_cast<int32_t *>(of_blocks), block, __riscv_vmax(next, others, FULL), FULL);
            __riscv_vsuxei32(reinterpret_cast<int32_t *>(of_columns), column, nothing, FULL);
            __riscv_vse32(reinterpret_cast<int32_t *>(place) - WAYS * lanes, best, FULL);
            __riscv_vse32(place, column, FULL);
        }
    }

    /* Columns at the places of what won; `first` is that of the first. */
    void find(uint32_t first) {
        const size_t vl = length(k * table.lanes);
        const Vector place = fetch(table[PLACES], vl);
        const Vector at = __riscv_vsrl(place, uint32_t(__builtin_ctz(row)), vl);
        const Vector block = __riscv_vsrl(__riscv_vmul(at, 65536 / BLOCK + 1, vl), 16, vl);
        const Vector rest = __riscv_vnmsac(at, BLOCK, block, vl);
        const Vector group = __riscv_vsrl(__riscv_vmul(rest, 65536 / GROUP + 1, vl), 16, vl);
        Vector column = __riscv_vsub(__riscv_vnmsac(at, GROUP, block, vl), group, vl);
        column = __riscv_vadd(column, first, vl);
        if (first)
            column = __riscv_vluxei32_mu(__riscv_vmseq(block, WAYS, vl), column,
                                         table.at + (int32_t(FOUND) - int32_t(KEPT)) * int32_t(table.lanes), place, vl);
        put(table[FOUND], column, vl);
    }

    Table table;
    uint32_t row;
};

} // namespace gp

#endif
#endif
