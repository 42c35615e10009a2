// dst = src0 between two bounds, 32-bit integers: imm1 is the lower, imm2 the upper one.
#include <plexus/view.h>

// A column at a time: the partitions of this core lie one behind the other in the lane window.
static void column(const int32_t *x, int32_t *y, uint32_t count, int32_t low, int32_t high) {
    for (uint32_t p = 0; p < count; p++) y[p] = x[p] < low ? low : x[p] > high ? high : x[p];
}

GP_ENTRY(clip) {
    const gp::View<const int32_t> x(GP_SRC0);
    const gp::View<int32_t> y(GP_DST);
    const int32_t low = int32_t(gp_imm1()), high = int32_t(gp_imm2());
    if (low > high) return 1; // the run fails: core gp0 of clip.elf ended with exit value 1, not 0
    const uint32_t first = y.begin(), count = y.end() - first;
    for (uint32_t i = 0; i < y.count(); i++) column(x.lanes(i) + first, y.lanes(i) + first, count, low, high);
    return 0;
}
