/* Columns of an operand in vector registers, on cores that have them: as many side by side as eight registers hold. */
#ifndef PLEXUS_LIB_LANES_H
#define PLEXUS_LIB_LANES_H

#include "columns.h"

namespace gp {

/* How a loop over `columns` of `rows` partitions goes through memory: as it says, or in one piece if in every operand
 * all partitions of the core take part and neighbours lie side by side. */
struct Pass {
    uint32_t columns, rows;

    template <typename... Walks>
    Pass(uint32_t columns_, uint32_t rows_, Walks... walks) : columns(columns_), rows(rows_) {
        if (((uint32_t(walks.step) == rows) && ...)) rows *= columns, columns = 1;
    }
};

#ifdef __riscv_vector

inline size_t length(uint32_t elements) { return __riscv_vsetvl_e32m8(elements); }
inline Vector fetch(const uint32_t *at, size_t vl) { return __riscv_vle32_v_u32m8(at, vl); }
inline void put(uint32_t *at, Vector value, size_t vl) { __riscv_vse32(at, value, vl); }
/* `value` is computed before what is fetched from here on: a core stands still when it fetches while it fetches. */
template <typename T>
inline void before(T &value) {
    asm volatile("" : "+r"(value) : : "memory");
}
inline void before(Vector &value) { asm volatile("" : "+vr"(value) : : "memory"); }
inline Vector all(uint32_t value, size_t vl) { return __riscv_vmv_v_x_u32m8(value, vl); }
inline SignedVector with_sign(Vector value) { return __riscv_vreinterpret_i32m8(value); }
inline Vector without_sign(SignedVector value) { return __riscv_vreinterpret_u32m8(value); }

/* What grows by `multiplier` from partition to partition and by `step` from column to column: registers hold `vl`
 * elements of it, then those `further` on. */
struct Ramp {
    Ramp(const Pass &pass, uint32_t value_, uint32_t multiplier_, uint32_t step_)
        : vl(length(pass.rows)), value(value_), multiplier(multiplier_), step(step_) {
        further = pass.columns > 1 ? step : vl / gp_lanes() * step;
    }
    Vector first() const {
        const uint32_t lanes = gp_lanes();
        const Vector number = __riscv_vid_v_u32m8(vl);
        const Vector lane = __riscv_vand(number, lanes - 1, vl);
        const Vector column = __riscv_vsrl(number, uint32_t(__builtin_ctz(lanes)), vl);
        return __riscv_vmacc(__riscv_vadd(__riscv_vmul(lane, multiplier, vl), value, vl), step, column, vl);
    }

    size_t vl;
    uint32_t value, multiplier, step, further;
};

/* Numbers of the lanes whose elements `vl` registers hold, times 4: bytes in a row. */
inline Vector lane_bytes(size_t vl) {
    return __riscv_vsll(__riscv_vand(__riscv_vid_v_u32m8(vl), gp_lanes() - 1, vl), 2, vl);
}

extern "C" uint32_t __free_start[]; /* local memory behind the image and all that it names */

/* Rows of a word for each lane in local memory that nobody else uses, while the operator runs. Lane i has its words in
 * bank i, so a register of them, each from a row of its own, is found in a cycle. */
struct Table {
    Table() : lanes(gp_lanes()), at(__free_start) {
        const uint32_t end = PLEXUS_REGION_LOCAL + GP_REGISTER(LOCAL_BYTES);
        rows = (end - reinterpret_cast<uint32_t>(at)) / row_bytes();
    }
    uint32_t row_bytes() const { return 4 * lanes; }
    uint32_t *operator[](uint32_t row) const { return at + row * lanes; }
    Walk<uint32_t> walk() const { return {at, int32_t(lanes)}; }

    uint32_t lanes, rows;
    uint32_t *at;
};

/* Columns of one partition that lie side by side, eight at a time: a register has a row of the core's partitions, of
 * which one takes part, so lookups of words in local memory find all banks free. */
struct OneLane {
    static constexpr uint32_t AT_ONCE = 8;

    explicit OneLane(const uint32_t *at)
        : lanes(gp_lanes()), lane(reinterpret_cast<uint32_t>(at) / 4 & (lanes - 1)), most(length(AT_ONCE * lanes)) {}
    Mask mask() const { return __riscv_vmseq(__riscv_vand(__riscv_vid_v_u32m8(most), lanes - 1, most), lane, most); }
    /* Byte of its column's word in local memory, for each element. */
    Vector word() const {
        const uint32_t log = uint32_t(__builtin_ctz(lanes));
        return __riscv_vsll(__riscv_vsrl(__riscv_vid_v_u32m8(most), log, most), 2, most);
    }

    /* Columns from `from` on to words of `scratch`. */
    [[gnu::noinline]] void take(const uint32_t *from, uint32_t columns) const {
        const Mask takes_part = mask();
        const Vector at = word();
        uint32_t *to = scratch;
        from -= lane;
        for (uint32_t left = columns * lanes, vl; left; left -= vl, to += AT_ONCE, from += most) {
            vl = left < most ? left : most;
            __riscv_vsuxei32(takes_part, to, at, fetch(from, vl), vl);
        }
    }

    uint32_t lanes, lane;
    size_t most;
};

/* Columns of `rows` partitions each, as many as they are. */
[[gnu::noinline]] inline void copy(Walk<uint32_t> to, Walk<const uint32_t> from, uint32_t columns, uint32_t rows) {
    const Pass pass(columns, rows, to, from);
    for (uint32_t i = 0; i < pass.columns; i++, to.next(), from.next())
        for (uint32_t p = 0, vl; p < pass.rows; p += vl) {
            vl = length(pass.rows - p);
            put(&to[p], fetch(&from[p], vl), vl);
        }
}

/* Words of memory that is no SBUF. */
inline void copy_words(uint32_t *to, const uint32_t *from, uint32_t words) {
    copy({to, 1}, {from, 1}, 1, words);
}

/* The same word in all places. */
[[gnu::noinline]] inline void clear(uint32_t *to, uint32_t words, uint32_t value) {
    for (size_t vl; words; words -= vl, to += vl) {
        vl = length(words);
        put(to, all(value, vl), vl);
    }
}

#endif

} // namespace gp

#endif
