// dst[p, i...] = src0[p, i...] where offset + p * multiplier + sum of i[axis] * step[axis] compares with 0, else fill.
// Any 32-bit elements, up to three axes.
#include "lanes.h"

#ifdef __riscv_vector
#define GP_VECTOR_RELATION(vector) \
    gp::Mask operator()(gp::SignedVector value, size_t vl) const { return vector(value, 0, vl); }
#else
#define GP_VECTOR_RELATION(vector)
#endif
#define GP_RELATION(name, operation, vector)                              \
    struct name {                                                         \
        bool operator()(int32_t value) const { return value operation 0; } \
        GP_VECTOR_RELATION(vector)                                        \
    }
GP_RELATION(Equal, ==, __riscv_vmseq);
GP_RELATION(Greater, >, __riscv_vmsgt);
GP_RELATION(Less, <, __riscv_vmslt);

template <typename Relation>
static void row(gp::Walk<const uint32_t> in, gp::Walk<uint32_t> out, uint32_t count, uint32_t rows, uint32_t value,
                uint32_t step, uint32_t multiplier, uint32_t fill, bool unless) {
    const Relation holds;
#ifdef __riscv_vector
    const gp::Pass pass(count, rows, in, out);
    const gp::Ramp ramp(pass, value, multiplier, step);
    gp::Vector now = ramp.first();
    for (uint32_t i = 0; i < pass.columns; i++, in.next(), out.next())
        for (uint32_t p = 0; p < pass.rows; p += ramp.vl, now = __riscv_vadd(now, ramp.further, ramp.vl)) {
            const size_t vl = gp::length(pass.rows - p);
            const gp::Mask held = holds(gp::with_sign(now), vl);
            const gp::Vector other = gp::all(fill, vl), element = gp::fetch(&in[p], vl);
            if (unless) gp::put(&out[p], __riscv_vmerge(element, other, held, vl), vl);
            else gp::put(&out[p], __riscv_vmerge(other, element, held, vl), vl);
        }
#else
    for (uint32_t i = 0; i < count; i++, value += step, in.next(), out.next())
        if (unless)
            for (uint32_t p = 0; p < rows; p++) out[p] = holds(int32_t(value + p * multiplier)) ? fill : in[p];
        else
            for (uint32_t p = 0; p < rows; p++) out[p] = holds(int32_t(value + p * multiplier)) ? in[p] : fill;
#endif
}

/* Where the relation holds, or `unless` it does. */
template <typename Relation>
static void select(bool unless) {
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
            row<Relation>(from.walk(i1, i2, 0), to.walk(i1, i2, 0), to.count[0], to.rows,
                          first + i1 * step1 + i2 * step2, step0, multiplier, fill, unless);
}

GP_ENTRY(affine_select) {
    switch (GP_OPERATOR(AFFINE_SELECT_RELATION)) {
        case PLEXUS_RELATION_EQ: select<Equal>(false); break;
        case PLEXUS_RELATION_NE: select<Equal>(true); break;
        case PLEXUS_RELATION_GT: select<Greater>(false); break;
        case PLEXUS_RELATION_GE: select<Less>(true); break;
        case PLEXUS_RELATION_LT: select<Less>(false); break;
        default: select<Greater>(true);
    }
    return 0;
}
