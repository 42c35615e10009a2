// dst[p, i...] = offset + p * multiplier + sum of i[axis] * step[axis], 32 bits, wrapping; up to four axes.
#include "lanes.h"

static void row(gp::Walk<uint32_t> to, uint32_t count, uint32_t rows, uint32_t value, uint32_t step,
                uint32_t multiplier) {
#ifdef __riscv_vector
    if (!rows) return;
    const gp::Pass pass(count, rows, to);
    const gp::Ramp ramp(pass, value, multiplier, step);
    gp::Vector now = ramp.first();
    const size_t vl = ramp.vl;
    gp::Vector then = __riscv_vadd(now, ramp.further, vl); /* while one is stored the other one goes on */
    for (uint32_t i = 0; i < pass.columns; i++, to.next()) {
        uint32_t *put = to.at, *const end = put + pass.rows;
        for (; put + 2 * vl <= end; put += 2 * vl) {
            gp::put(put, now, vl);
            gp::put(put + vl, then, vl);
            now = __riscv_vadd(now, 2 * ramp.further, vl);
            then = __riscv_vadd(then, 2 * ramp.further, vl);
        }
        for (; put < end; put += vl) {
            gp::put(put, now, uint32_t(end - put) < vl ? uint32_t(end - put) : vl);
            now = then;
            then = __riscv_vadd(then, ramp.further, vl);
        }
    }
#else
    for (uint32_t i = 0; i < count; i++, value += step, to.next())
        for (uint32_t p = 0; p < rows; p++) to[p] = value + p * multiplier;
#endif
}

GP_ENTRY(iota) {
    const gp::Columns<uint32_t> to(GP_DST);
    const uint32_t multiplier = GP_OPERATOR(IOTA_MULTIPLIER);
    const uint32_t first = GP_OPERATOR(IOTA_OFFSET) + to.number * multiplier;
    const int32_t step0 = int16_t(GP_OPERATOR(IOTA_STEP0)), step1 = int16_t(GP_OPERATOR(IOTA_STEP1));
    const int32_t step2 = int16_t(GP_OPERATOR(IOTA_STEP2)), step3 = int16_t(GP_OPERATOR(IOTA_STEP3));
    for (uint32_t i3 = 0; i3 < to.count[3]; i3++)
        for (uint32_t i2 = 0; i2 < to.count[2]; i2++)
            for (uint32_t i1 = 0; i1 < to.count[1]; i1++)
                row(to.walk(i1, i2, i3), to.count[0], to.rows, first + i1 * step1 + i2 * step2 + i3 * step3, step0,
                    multiplier);
    return 0;
}
