/* The k largest elements of all lanes at once, on cores with vectors. */
#ifndef PLEXUS_LIB_TOURNAMENT_H
#define PLEXUS_LIB_TOURNAMENT_H

#include "best.h"
#include "lanes.h"

#ifdef __riscv_vector

namespace gp {

/* What a tournament compares: integers with sign. 32-bit integers as they are; FP32 by its bits, which is quick, and
 * right if there is no NaN and all that win are above 0, or any FP32 by keys. */
enum Keys { INTEGERS, POSITIVES, ANY_FLOATS };

/* Less than all that can win, of columns that are not there or have won; as bits it is no NaN. */
constexpr int32_t nothing_of(Keys keys) { return keys == POSITIVES ? 0 : INT32_MIN; }

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

/* Which of eight elements register r has: bits 0 and 2 change places, so halves of the registers are neighbours. */
constexpr uint32_t turned(uint32_t r) { return r >> 2 | (r & 2) | (r & 1) << 2; }

/* Eight that grow by `step`, in registers as `turned` says. */
inline Vector eight(vuint32m1_t first, uint32_t step) {
    return __riscv_vcreate_v_u32m1_u32m8(
        first, __riscv_vadd(first, turned(1) * step, FULL), __riscv_vadd(first, turned(2) * step, FULL),
        __riscv_vadd(first, turned(3) * step, FULL), __riscv_vadd(first, turned(4) * step, FULL),
        __riscv_vadd(first, turned(5) * step, FULL), __riscv_vadd(first, turned(6) * step, FULL),
        __riscv_vadd(first, turned(7) * step, FULL));
}

/* Of eight elements of each lane the place of the largest, of equal ones of the lower, itself, and, if NEXT, the
 * largest of the others. They are in registers as `turned` says. */
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
    vuint32m1_t at1 = __riscv_vmerge(__riscv_vget_u32m1(at2, 1), __riscv_vget_u32m1(at2, 0), left1, FULL);
    best = __riscv_vmax(e, f, FULL);
    if (NEXT) {
        second = __riscv_vmax(__riscv_vget_i32m1(low2, 0), __riscv_vget_i32m1(low2, 1), FULL);
        second = __riscv_vmax(second, __riscv_vmin(e, f, FULL), FULL);
        asm volatile("" : "+vr"(at1), "+vr"(best), "+vr"(second)); /* here, so that nothing else must be kept */
    }
    return at1;
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

    static constexpr uint32_t K_MOST = 8, FLAT = 64, AT_ONCE = 4; /* columns of a block; blocks of `run_several` */

    /* Whether k is not too large, and there is room. */
    bool fits() const { return k <= K_MOST && table.rows >= ROWS; }

    /* What won, the largest first, and their columns. */
    Walk<const uint32_t> keys() const { return {table[KEYS], int32_t(table.lanes)}; }
    Walk<uint32_t> columns() const { return {table[FOUND], int32_t(table.lanes)}; }
    /* Of `run_several`. */
    Walk<uint32_t> columns_of_several(uint32_t n) const {
        return {table[SEVERAL + n * RESULTS + 2 * WAYS], int32_t(table.lanes)};
    }

    /* As `run` for several rows of columns, each at most FLAT, one behind the other: each has a block. */
    [[gnu::noinline]] bool run_several(const uint32_t *in, uint32_t columns, uint32_t several, Keys keys) {
        const uint32_t lanes = table.lanes;
        const bool whole = columns == FLAT && keys != ANY_FLOATS;
        if (!whole)
            for (uint32_t n = 0; n < several; n++) part(table[n * BLOCK], 1, in + n * columns * lanes, columns, keys);
        const uint32_t bits = fill(table.at, several, whole ? in : table[2], lanes, nothing_of(keys));
        rounds(nothing_of(keys), false, several, SEVERAL);
        for (uint32_t n = 0; n < several; n++) find(0, SEVERAL + n * RESULTS);
        return right(keys, bits, several, SEVERAL);
    }

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
            rounds(nothing_of(keys), deep, 1, KEYS);
            find(first, KEYS);
        }
        return right(keys, most_bits, 1, KEYS);
    }

  private:
    static constexpr uint32_t WAYS = K_MOST, GROUP = 1 + WAYS, BLOCK = 1 + WAYS * GROUP, COLUMNS = WAYS * WAYS * WAYS,
                              KEPT = WAYS * BLOCK, KEYS = KEPT + BLOCK, PLACES = KEYS + WAYS, FOUND = PLACES + WAYS,
                              BLOCKS = FOUND + WAYS, ROWS = BLOCKS + WAYS, RESULTS = BLOCKS - KEYS,
                              SEVERAL = AT_ONCE * BLOCK; /* where results of several are */

    static SignedVector found(const uint32_t *base, Vector at) {
        return with_sign(__riscv_vluxei32(base, at, FULL));
    }
    int32_t *at_row(uint32_t r) const { return reinterpret_cast<int32_t *>(table[r]); }

    /* Whether these keys say which elements are larger: by the largest bits, the largest that won and the least. */
    bool right(Keys keys, uint32_t bits, uint32_t several, uint32_t results) const {
        if (keys == ANY_FLOATS) return true;
        vint32m1_t high = __riscv_vle32_v_i32m1(at_row(results), FULL), low = high;
        for (; several; several--, results += RESULTS) {
            high = __riscv_vmax(high, __riscv_vle32_v_i32m1(at_row(results), FULL), FULL);
            low = __riscv_vmin(low, __riscv_vle32_v_i32m1(at_row(results + k - 1), FULL), FULL);
        }
        const int32_t least = __riscv_vmv_x(__riscv_vredmin(low, low, FULL));
        if (keys == INTEGERS) return least != nothing_of(keys);
        const int32_t most = __riscv_vmv_x(__riscv_vredmax(high, high, FULL));
        return bits <= (Float::SIGN | Float::INFINITY_BITS) && most <= int32_t(Float::INFINITY_BITS) && least > 0;
    }

    /* Keys of these columns to their places, from a block on; there are none behind them. */
    [[gnu::noinline]] void part(uint32_t *block, uint32_t blocks, const uint32_t *in, uint32_t columns,
                                Keys keys) const {
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
                     : [x] "=&r"(result), [group] "=&r"(group), [before] "=&r"(before), [at] "=&r"(at),
                       [from] "+&r"(from), [block] "+&r"(block), [blocks] "+&r"(blocks)
                     : [nothing] "r"(nothing), [row] "r"(row), [size] "r"(BLOCK * row), [there] "r"(there),
                       [step] "r"(step), [end] "r"(end), [nine] "r"(GROUP * row)
                     : "memory", "vtype", "vl", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10",
                       "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23",
                       "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31");
        return result;
    }

    /* What has won so far is the ninth block. */
    void keep(int32_t nothing, bool some) {
        clear(table[KEPT], BLOCK * table.lanes, uint32_t(nothing)); /* it wins where all others are nothing */
        if (!some) return;
        copy({table[KEPT + 2], int32_t(table.lanes)}, {table[KEYS], int32_t(table.lanes)}, k, table.lanes);
        const vint32m1_t high = __riscv_vle32_v_i32m1(at_row(KEYS), FULL);
        __riscv_vse32(at_row(KEPT), high, FULL);
        __riscv_vse32(at_row(KEPT + 1), high, FULL);
    }

    /* Whoever wins becomes nothing, and its group and block have the next in their rows. What is in scalar registers is
     * computed before: a core stands still when it loads a scalar. */
    [[gnu::noinline]] void rounds(int32_t is_nothing, bool deep, uint32_t several, uint32_t results) {
        const uint32_t step = row, lanes = table.lanes;
        uint32_t *const of_blocks = table.at, *of_groups = of_blocks + lanes;
        uint32_t *const blocks = table[BLOCKS], *place = table[results + WAYS];
        const int32_t *const of_kept = reinterpret_cast<int32_t *>(of_blocks + KEPT * lanes);
        const uint32_t of_all = k * lanes;
        const vuint32m1_t lane = __riscv_vsll(__riscv_vid_v_u32m1(FULL), 2, FULL);
        const vint32m1_t nothing = __riscv_vmv_v_x_i32m1(is_nothing, FULL);
        put(blocks, eight(lane, BLOCK * step), FULL);
        const vuint32m1_t kept_at = here(__riscv_vadd(lane, KEPT * step, FULL));
        for (; several; several--, of_groups += BLOCK * lanes, place += RESULTS * lanes - of_all) {
            uint32_t *const of_columns = of_groups + lanes;
            for (const uint32_t *const end = place + of_all; place != end; place += lanes) {
                vint32m1_t best = nothing, others = nothing, next = nothing;
                vuint32m1_t block;
                if (deep) {
                    const Vector at = fetch(blocks, FULL);
                    const vint32m1_t kept = __riscv_vle32_v_i32m1(of_kept, FULL);
                    block = winner<false>(found(of_blocks, at), at, best, next);
                    block = __riscv_vmerge(block, kept_at, __riscv_vmsge(kept, best, FULL), FULL);
                } else block = __riscv_vle32_v_u32m1(blocks, FULL);
                Vector at = eight(block, GROUP * step);
                const vuint32m1_t group = winner<true>(found(of_groups, at), at, best, others);
                at = eight(group, step);
                const vuint32m1_t column = winner<true>(found(of_columns, at), at, best, next);
                __riscv_vsuxei32(reinterpret_cast<int32_t *>(of_groups), group, next, FULL);
                next = __riscv_vmax(next, others, FULL);
                if (deep) __riscv_vsuxei32(reinterpret_cast<int32_t *>(of_blocks), block, next, FULL);
                __riscv_vsuxei32(reinterpret_cast<int32_t *>(of_columns), column, nothing, FULL);
                __riscv_vse32(reinterpret_cast<int32_t *>(place) - WAYS * lanes, best, FULL);
                __riscv_vse32(place, column, FULL);
            }
        }
    }

    /* Columns at the places of what won; `first` is that of the first. */
    [[gnu::noinline]] void find(uint32_t first, uint32_t results) {
        const size_t vl = length(k * table.lanes);
        const Vector place = fetch(table[results + WAYS], vl);
        const Vector at = __riscv_vsrl(place, uint32_t(__builtin_ctz(row)), vl);
        const Vector block = __riscv_vsrl(__riscv_vmul(at, 65536 / BLOCK + 1, vl), 16, vl);
        const Vector rest = __riscv_vnmsac(at, BLOCK, block, vl);
        const Vector group = __riscv_vsrl(__riscv_vmul(rest, 65536 / GROUP + 1, vl), 16, vl);
        Vector column = __riscv_vsub(__riscv_vnmsac(at, GROUP, block, vl), group, vl);
        column = __riscv_vadd(column, first, vl);
        if (first)
            column = __riscv_vluxei32_mu(__riscv_vmseq(block, WAYS, vl), column,
                                         table.at + (int32_t(FOUND) - int32_t(KEPT)) * int32_t(table.lanes), place, vl);
        put(table[results + 2 * WAYS], column, vl);
    }

    Table table;
    uint32_t row;
};

} // namespace gp

#endif
#endif
