// dst[p, i...] = src0[p, i...] where offset + p * multiplier + sum of i[axis] * step[axis] compares with 0, else fill.
// Any 32-bit elements, up to three axes.
#include "lanes.h"

/* A value is taken if it is below `limit`, or `unless` it is; every relation is one of these, so there is one loop. */
struct Relation {
    uint32_t added; /* to the value first; half of all numbers, so that 0 is the least */
    int32_t limit;
    bool unless;
};

static Relation relation() {
    constexpr uint32_t half = uint32_t(1) << 31;
    switch (GP_OPERATOR(AFFINE_SELECT_RELATION)) {
        case PLEXUS_RELATION_EQ: return {half, INT32_MIN + 1, false};
        case PLEXUS_RELATION_NE: return {half, INT32_MIN + 1, true};
        case PLEXUS_RELATION_GT: return {0, 1, true};
        case PLEXUS_RELATION_GE: return {0, 0, true};
        case PLEXUS_RELATION_LT: return {0, 0, false};
        default: return {0, 1, false};
    }
}

static void row(gp::Walk<const uint32_t> in, gp::Walk<uint32_t> out, uint32_t count, uint32_t rows, uint32_t value,
                uint32_t step, uint32_t multiplier, uint32_t fill, int32_t limit, bool unless) {
#ifdef __riscv_vector
    const gp::Pass pass(count, rows, in, out);
    const gp::Ramp ramp(pass, value, multiplier, step);
    gp::Vector now = ramp.first();
    for (uint32_t i = 0; i < pass.columns; i++, in.next(), out.next())
        for (uint32_t p = 0; p < pass.rows; p += ramp.vl, now = __riscv_vadd(now, ramp.further, ramp.vl)) {
            const size_t vl = gp::length(pass.rows - p);
            const gp::Mask held = __riscv_vmslt(gp::with_sign(now), limit, vl);
            const gp::Vector other = gp::all(fill, vl), element = gp::fetch(&in[p], vl);
            if (unless) gp::put(&out[p], __riscv_vmerge(element, other, held, vl), vl);
            else gp::put(&out[p], __riscv_vmerge(other, element, held, vl), vl);
        }
#else
    for (uint32_t i = 0; i < count; i++, value += step, in.next(), out.next())
        if (unless)
            for (uint32_t p = 0; p < rows; p++) out[p] = int32_t(value + p * multiplier) < limit ? fill : in[p];
        else
            for (uint32_t p = 0; p < rows; p++) out[p] = int32_t(value + p * multiplier) < limit ? in[p] : fill;
#endif
}

GP_ENTRY(affine_select) {
    const gp::Columns<const uint32_t> from(GP_SRC0);
    const gp::Columns<uint32_t> to(GP_DST);
    const uint32_t fill = GP_OPERATOR(AFFINE_SELECT_FILL);
    const int32_t multiplier = int16_t(GP_OPERATOR(AFFINE_SELECT_MULTIPLIER));
    const int32_t step0 = int16_t(GP_OPERATOR(AFFINE_SELECT_STEP0)), step1 = int16_t(GP_OPERATOR(AFFINE_SELECT_STEP1));
    const int32_t step2 = int16_t(GP_OPERATOR(AFFINE_SELECT_STEP2));
    const int32_t offset = int32_t(GP_OPERATOR(AFFINE_SELECT_OFFSET) << 8) >> 8;
    const Relation chosen = relation();
    const uint32_t first = chosen.added + uint32_t(offset) + to.number * uint32_t(multiplier);
    for (uint32_t i2 = 0; i2 < to.count[2]; i2++)
        for (uint32_t i1 = 0; i1 < to.count[1]; i1++)
            row(from.walk(i1, i2, 0), to.walk(i1, i2, 0), to.count[0], to.rows,
                first + i1 * step1 + i2 * step2, step0, multiplier, fill, chosen.limit, chosen.unless);
    return 0;
}
