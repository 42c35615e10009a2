// dst[p, :] = columns of src0[p, :] that are not 0, ascending, then -1; src1[p, 0] = how many there are, written too,
// though only as many are in dst as it has columns. FP32 (-0 is 0, a NaN is not) or 32-bit integers.
#include "columns.h"

GP_ENTRY(nonzero) {
    const gp::Columns<const uint32_t> from(GP_SRC0);
    const gp::Columns<int32_t> columns(GP_DST), found(GP_SRC1);
    const uint32_t shift = from.dtype == PLEXUS_DTYPE_FP32; // the sign leaves
    const uint32_t size = from.count[0], rows = from.rows;
    const int32_t room = int32_t(columns.count[0]);
    for (uint32_t p = 0; p < rows; p++) {
        auto in = from.walk();
        auto out = columns.walk();
        int32_t count = 0;
        for (uint32_t i = 0; i < size; i++, in.next()) {
            if (!(in[p] << shift)) continue;
            if (count++ < room) out[p] = int32_t(i), out.next();
        }
        for (int32_t i = count; i < room; i++, out.next()) out[p] = -1;
        found[0][p] = count;
    }
    return 0;
}
