// dst = src0 + src1, 32-bit integers. Plain loops: the compiler makes vector instructions of them.
#include <plexus/view.h>

static void add(const int32_t *__restrict a, const int32_t *__restrict b, int32_t *__restrict sum, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) sum[i] = a[i] + b[i];
}

// A column at a time: the partitions of this core lie one behind the other in the lane window.
GP_ENTRY(vector_add) {
    const gp::View<const int32_t> a(GP_SRC0), b(GP_SRC1);
    const gp::View<int32_t> sum(GP_DST);
    const uint32_t first = sum.begin(), count = sum.end() - first;
    for (uint32_t i = 0; i < sum.count(); i++) add(a.lanes(i) + first, b.lanes(i) + first, sum.lanes(i) + first, count);
    return 0;
}
