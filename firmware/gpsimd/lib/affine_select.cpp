// dst[p, i...] = src0[p, i...] where offset + p * multiplier + sum of i[axis] * step[axis] compares with 0, else fill.
// Any 32-bit elements, up to three axes.
#include "columns.h"

template <typename Relation>
static void row(gp::Walk<const uint32_t> in, gp::Walk<uint32_t> out, uint32_t count, uint32_t rows, uint32_t value,
                uint32_t step, uint32_t multiplier, uint32_t fill, Relation holds) {
    for (uint32_t i = 0; i < count; i++, value += step, in.next(), out.next())
        GP_LANES
        for (uint32_t p = 0; p < rows; p++) out[p] = holds(int32_t(value + p * multiplier)) ? in[p] : fill;
}

template <typename Relation>
static void select(Relation holds) {
    const gp::Columns<const uint32_t> from(GP_SRC0);
    const gp::Columns<uint32_t> to(GP_DST);
    const uint32_t fill = GP_OPERATOR(AFFINE_SELECT_FILL);
    const int32_t multiplier = int16_t(GP_OPERATOR(AFFINE_SELECT_MULTIPLIER));
    const int32_t step0 = int16_t(GP_OPERATOR(AFFINE_SELECT_STEP0)), step1 = int16_t(GP_OPERATOR(AFFINE_SELECT_STEP1));
    const int32_t step2 = int16_t(GP_OPERATOR(AFFINE_SELECT_STEP2));
    const int32_t offset = int32_t(GP_OPERATOR(AFFINE_SELECT_OFFSET) << 8) >> 8;
    const uint32_t first = uint32_t(offset) + to.number * uint32_t(multiplier);
    for (uint32_t i2 = 0; i2 < to.count[2]; i2++)
        for (uint32_t i1 = 0; i1 < to.count[1]; i1++)
            row(from.walk(i1, i2, 0), to.walk(i1, i2, 0), to.count[0], to.rows, first + i1 * step1 + i2 * step2, step0,
                multiplier, fill, holds);
}

GP_ENTRY(affine_select) {
    switch (GP_OPERATOR(AFFINE_SELECT_RELATION)) {
        case PLEXUS_RELATION_EQ: select([](int32_t v) { return v == 0; }); break;
        case PLEXUS_RELATION_NE: select([](int32_t v) { return v != 0; }); break;
        case PLEXUS_RELATION_GT: select([](int32_t v) { return v > 0; }); break;
        case PLEXUS_RELATION_GE: select([](int32_t v) { return v >= 0; }); break;
        case PLEXUS_RELATION_LT: select([](int32_t v) { return v < 0; }); break;
        default: select([](int32_t v) { return v <= 0; });
    }
    return 0;
}
