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
    if (NEXT) low = here(__riscv_vmin(a, b, FULL));
    const vuint32m4_t at4 = here(__riscv_vmerge(__riscv_vget_u32m4(at, 1), __riscv_vget_u32m4(at, 0), left, FULL));

    const vint32m2_t c = __riscv_vget_i32m2(high, 0), d = __riscv_vget_i32m2(high, 1);
    const vbool16_t left2 = __riscv_vmsge(c, d, FULL);
    const vint32m2_t high2 = __riscv_vmax(c, d, FULL);
    vint32m2_t low2 = high2;
    if (NEXT) {
        low2 = __riscv_vmax(__riscv_vget_i32m2(low, 0), __riscv_vget_i32m2(low, 1), FULL);
        low2 = here(__riscv_vmax(low2, __riscv_vmin(c, d, FULL), FULL));
    }
    const vuint32m2_t at2 = here(__riscv_vmerge(__riscv_vget_u32m2(at4, 1), __riscv_vget_u32m2(at4, 0), left2, FULL));

    const vint32m1_t e = __riscv_vget_i32m1(high2, 0), f = __riscv_vget_i32m1(high2, 1);
    const vbool32_t left1 = __riscv_vmsge(e, f, FULL);
    const vuint32m1_t at1 = here(__riscv_vmerge(__riscv_vget_u32m1(at2, 1), __riscv_vget_u32m1(at2, 0), left1, FULL));
    best = here(__riscv_vmax(e, f, FULL));
    if (NEXT) {
        second = __riscv_vmax(__riscv_vget_i32m1(low2, 0), __riscv_vget_i32m1(low2, 1), FULL);
        second = here(__riscv_vmax(second, __riscv_vmin(e, f, FULL), FULL));
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
            const uint32_t bits = fill(in, some, deep ? WAYS : 1, keys);
            if (bits > most_bits) most_bits = bits;
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

    /* Keys of these columns to the places of a block. */
    [[gnu::noinline]] void part(uint32_t *group, const uint32_t *in, uint32_t columns, Keys keys) const {
        const uint32_t lanes = table.lanes;
        for (uint32_t g = 0; g < WAYS; g++, group += GROUP * lanes, in += WAYS * lanes) {
            put(group, all(uint32_t(nothing_of(keys)), FULL), FULL);
            if (!columns) continue;
            const uint32_t some = columns < WAYS ? columns : WAYS;
            const size_t vl = length(some * lanes);
            const Vector bits = fetch(in, vl);
            put(group, keys == ANY_FLOATS ? without_sign(float_keys(bits, vl)) : bits, vl);
            columns -= some;
        }
    }

    /* The tree of these columns; gives the largest of their bits. Two groups at a time, so that one goes on while the
     * other waits, and the next is loaded meanwhile. */
    [[gnu::noinline]] uint32_t fill(const uint32_t *in, uint32_t columns, uint32_t blocks, Keys keys) {
        const uint32_t lanes = table.lanes;
        vuint32m4_t watched = __riscv_vmv_v_x_u32m4(0, FULL);
        for (uint32_t *block = table.at; blocks; blocks--) {
            const uint32_t *from = in;
            uint32_t step = WAYS * lanes, *group = block + lanes, *const end = block += BLOCK * lanes;
            if (columns < WAYS * WAYS || keys == ANY_FLOATS) {
                part(group + lanes, in, columns, keys);
                from = group + lanes, step = GROUP * lanes;
                columns = columns < WAYS * WAYS ? WAYS * WAYS : columns;
            }
            in += WAYS * WAYS * lanes, columns -= WAYS * WAYS;
            vint32m1_t top = __riscv_vmv_v_x_i32m1(nothing_of(keys), FULL);
            vint32m4_t q4 = __riscv_vmv_v_x_i32m4(nothing_of(keys), FULL);
            int32_t *last = reinterpret_cast<int32_t *>(end - BLOCK * lanes); /* where that goes */
            for (Vector x = fetch(from, FULL); group != end; group += 2 * GROUP * lanes) {
                uint32_t *const other = group + GROUP * lanes;
                from += step;
                Vector y = fetch(from, FULL);
                put(group + lanes, x, FULL);
                watched = here(__riscv_vmaxu(watched, __riscv_vget_u32m4(x, 0), FULL));
                const vint32m2_t q2 = here(larger(q4));
                watched = here(__riscv_vmaxu(watched, __riscv_vget_u32m4(x, 1), FULL));
                const vint32m1_t q1 = here(larger(q2));
                const vint32m4_t p4 = here(larger(with_sign(x)));
                if (other + GROUP * lanes != end) from += step;
                x = fetch(from, FULL);
                top = __riscv_vmax(top, q1, FULL);
                __riscv_vse32(last, q1, FULL);
                put(other + lanes, y, FULL);
                watched = here(__riscv_vmaxu(watched, __riscv_vget_u32m4(y, 0), FULL));
                const vint32m2_t p2 = here(larger(p4));
                watched = here(__riscv_vmaxu(watched, __riscv_vget_u32m4(y, 1), FULL));
                const vint32m1_t p1 = here(larger(p2));
                q4 = here(larger(with_sign(y)));
                top = __riscv_vmax(top, p1, FULL);
                __riscv_vse32(reinterpret_cast<int32_t *>(group), p1, FULL);
                last = reinterpret_cast<int32_t *>(other);
            }
            const vint32m1_t q1 = larger(larger(q4));
            __riscv_vse32(last, q1, FULL);
            __riscv_vse32(reinterpret_cast<int32_t *>(end - BLOCK * lanes), __riscv_vmax(top, q1, FULL), FULL);
        }
        const vuint32m1_t none = __riscv_vmv_v_x_u32m1(0, FULL);
        return __riscv_vmv_x(__riscv_vredmaxu(watched, none, FULL));
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
                const vint32m1_t kept = __riscv_vreinterpret_i32m1(__riscv_vluxei32(of_blocks, kept_at, FULL));
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
