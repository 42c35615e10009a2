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

#endif

} // namespace gp

#endif
