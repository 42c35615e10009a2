/* The k largest elements of each partition, and the order of elements. */
#ifndef PLEXUS_LIB_BEST_H
#define PLEXUS_LIB_BEST_H

#include "lanes.h"

namespace gp {

/* Elements as integers of the same order: 32-bit integers as they are. `below(bits, bound(least))` is quick, and never
 * true of an element that is larger than `least`. */
struct Signed {
    static int32_t key(uint32_t bits) { return int32_t(bits); }
    static int32_t bound(int32_t least) { return least; }
    static bool below(uint32_t bits, int32_t bound) { return int32_t(bits) <= bound; }
};

/* FP32: zeros of both signs are equal, every NaN is above infinity. */
struct Float {
    static constexpr uint32_t INFINITY_BITS = 0x7f800000, SIGN = 0x80000000;
    static int32_t key(uint32_t bits) {
        const uint32_t magnitude = bits & ~SIGN;
        if (magnitude > INFINITY_BITS) return INT32_MAX;
        return int32_t(bits) < 0 ? -int32_t(magnitude) : int32_t(magnitude);
    }
    static int32_t bound(int32_t least) { return least < 0 ? INT32_MIN : least + (least != INT32_MAX); }
    static bool below(uint32_t bits, int32_t bound) { return int32_t(bits) < bound && bits <= (SIGN | INFINITY_BITS); }
};

/* `one` into the first `count` - 1 keys, which descend, behind those that equal it; gives the last of `count`. */
[[gnu::noinline]] inline int32_t keep(int32_t *key, uint32_t *place, uint32_t count, int32_t one, uint32_t at) {
    uint32_t j = count - 1;
    for (; j && key[j - 1] < one; j--) key[j] = key[j - 1], place[j] = place[j - 1];
    key[j] = one, place[j] = at;
    return key[count - 1];
}

/* Places of the k largest of `count` elements, the largest first, of equal ones the one that comes first. */
template <typename Order>
void largest(Walk<const uint32_t> in, uint32_t count, uint32_t k, int32_t *key, uint32_t *place) {
    int32_t least = 0;
    uint32_t i = 0;
    for (; i < k; i++, in.next()) least = keep(key, place, i + 1, Order::key(*in.at), i);
    int32_t bound = Order::bound(least);
    for (; i < count; i++, in.next()) {
        if (Order::below(*in.at, bound)) continue;
        const int32_t one = Order::key(*in.at);
        if (one > least) bound = Order::bound(least = keep(key, place, k, one, i));
    }
}

/* `emit(row, places)` for each of the partitions of this core, with what `largest` gives of it. */
template <typename Order, typename Emit>
void best(Walk<const uint32_t> in, uint32_t columns, uint32_t rows, uint32_t k, Emit emit) {
    int32_t key[PLEXUS_K_MAX];
    uint32_t place[PLEXUS_K_MAX];
    for (uint32_t p = 0; p < rows; p++, in.at++) {
        largest<Order>(in, columns, k, key, place);
        emit(p, place);
    }
}

} // namespace gp

#endif
