// dst[p, b] = how many elements of src0[p, :] are b; 32-bit integers, those outside of dst's columns do not count.
#include "columns.h"

GP_ENTRY(histogram) {
    const gp::Columns<const uint32_t> from(GP_SRC0);
    const gp::Columns<uint32_t> to(GP_DST);
    uint32_t *counts = gp::scratch;
    const uint32_t bins = to.count[0], columns = from.count[0], rows = from.rows;
    for (uint32_t p = 0; p < rows; p++) {
        for (uint32_t bin = 0; bin < bins; bin++) counts[bin] = 0;
        auto in = from.walk();
        for (uint32_t i = 0; i < columns; i++, in.next()) {
            const uint32_t bin = in[p];
            if (bin < bins) counts[bin]++;
        }
        auto out = to.walk();
        for (uint32_t bin = 0; bin < bins; bin++, out.next()) out[p] = counts[bin];
    }
    return 0;
}
