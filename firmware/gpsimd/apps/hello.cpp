// Prints who it is and sums its arguments: dst[p] = sum over src0 of every partition of this core, 32-bit integers.
#include <plexus/view.h>

int main() {
    const gp::View<const int32_t> source(GP_SRC0);
    const gp::View<int32_t> destination(GP_DST);
    int64_t total = 0;
    for (uint32_t partition = source.begin(); partition < source.end(); partition++) {
        int32_t sum = 0;
        for (uint32_t i = 0; i < source.count(); i++) sum += source(partition, i);
        destination(partition, 0) = sum;
        total += sum;
    }
    gp::printf("hello from core %u of %u: partitions %u to %u, sum %lld\n", gp::core(), gp::cores(), source.begin(),
               source.end(), total);
    return 0;
}
