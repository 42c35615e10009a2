/* The k largest elements of each partition, and the order of elements. */
#ifndef PLEXUS_LIB_BEST_H
#define PLEXUS_LIB_BEST_H

#include "lanes.h"

namespace gp {

/* Elements as integers of the same order: 32-bit integers as they are. `below(bits, bound(least))` is quick, and never
 * true of an element that is larger than `least`; of vectors, `above` is its opposite, and `ordered` is no larger than
 * the key. */
struct Signed {
    static int32_t key(uint32_t bits) { return int32_t(bits); }
    static int32_t bound(int32_t least) { return least; }
    static bool below(uint32_t bits, int32_t bound) { return int32_t(bits) <= bound; }
#ifdef __riscv_vector
    static SignedVector ordered(Vector bits, size_t) { return with_sign(bits); }
    static Mask above(Vector bits, SignedVector bound, size_t vl) { return __riscv_vmsgt(with_sign(bits), bound, vl); }
#endif
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
#ifdef __riscv_vector
    static SignedVector ordered(Vector bits, size_t vl) {
        const SignedVector value = with_sign(bits);
        return __riscv_vxor(value, __riscv_vand(__riscv_vsra(value, 31, vl), int32_t(~SIGN), vl), vl);
    }
    static Mask above(Vector bits, SignedVector bound, size_t vl) {
        const Mask nan = __riscv_vmsgtu(bits, SIGN | INFINITY_BITS, vl); /* those with a sign */
        return __riscv_vmor(__riscv_vmsge(with_sign(bits), bound, vl), nan, vl);
    }
#endif
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

#ifdef __riscv_vector

constexpr uint32_t LANES_MAX = 16, AT_ONCE = 8; /* columns in the registers of a vector */

/* What a search keeps of each lane: the k largest, and `bound` of the least of them for each column of a vector. */
struct Found {
    int32_t key[LANES_MAX][AT_ONCE];
    uint32_t place[LANES_MAX][AT_ONCE];
    int32_t bound[AT_ONCE * LANES_MAX];
};
static_assert(sizeof(Found) <= sizeof scratch);
inline Found &found = *reinterpret_cast<Found *>(scratch);

/* Smallest of eight registers, lane by lane, to `to`. */
inline void store_least(int32_t *to, SignedVector of, uint32_t lanes) {
    const vint32m4_t four =
        __riscv_vmin(__riscv_vget_i32m4(of, 0), __riscv_vget_i32m4(of, 1), AT_ONCE / 2 * lanes);
    const vint32m2_t two = __riscv_vmin(__riscv_vget_i32m2(four, 0), __riscv_vget_i32m2(four, 1), AT_ONCE / 4 * lanes);
    __riscv_vse32(to, __riscv_vmin(__riscv_vget_i32m1(two, 0), __riscv_vget_i32m1(two, 1), lanes), lanes);
}

/* As `largest` of every lane, into `found`: k at most 8, columns that lie side by side in all lanes. The
 * largest of every eighth column first: each lane has eight elements that are no less than the least of these, so all
 * that is below needs no look. False if that says nothing. */
template <typename Order>
bool search(const uint32_t *in, uint32_t columns, uint32_t k) {
    const uint32_t lanes = gp_lanes(), shift = uint32_t(__builtin_ctz(lanes)), end = columns << shift;
    const size_t most = length(AT_ONCE * lanes);
    SignedVector high = with_sign(all(uint32_t(INT32_MIN), most));
    for (uint32_t at = 0; at + most <= end; at += most)
        high = __riscv_vmax(high, Order::ordered(fetch(in + at, most), most), most);
    store_least(found.bound, high, lanes);
    for (uint32_t lane = 0; lane < lanes; lane++) {
        if (found.bound[lane] == INT32_MIN) return false;
        for (uint32_t j = 0; j < k; j++) found.key[lane][j] = found.bound[lane] - 1;
    }
    for (uint32_t lane = 0; lane < lanes; lane++)
        for (uint32_t n = AT_ONCE; n--;) found.bound[n << shift | lane] = Order::bound(found.key[lane][k - 1]);

    SignedVector bound = __riscv_vle32_v_i32m8(found.bound, most);
    for (uint32_t at = 0, vl; at < end; at += vl) {
        vl = length(end - at);
        Mask above = Order::above(fetch(in + at, vl), bound, vl);
        for (long n; (n = __riscv_vfirst(above, vl)) >= 0;) {
            const uint32_t element = at + uint32_t(n), lane = element & (lanes - 1);
            const int32_t one = Order::key(in[element]);
            int32_t *key = found.key[lane];
            if (one > key[k - 1]) {
                const int32_t next = Order::bound(keep(key, found.place[lane], k, one, element >> shift));
                for (uint32_t c = 0; c < AT_ONCE; c++) found.bound[c << shift | lane] = next;
            }
            above = __riscv_vmandn(above, __riscv_vmsof(above, vl), vl);
        }
        bound = __riscv_vle32_v_i32m8(found.bound, most);
    }
    return true;
}

#endif

/* `emit(row, places)` for each of the partitions of this core, with what `largest` gives of it. */
template <typename Order, typename Emit>
void best(Walk<const uint32_t> in, uint32_t columns, uint32_t rows, uint32_t k, Emit emit) {
#ifdef __riscv_vector
    if (k <= AT_ONCE && columns >= 4 * AT_ONCE && rows == gp_lanes() && uint32_t(in.step) == rows &&
        search<Order>(in.at, columns, k)) {
        for (uint32_t p = 0; p < rows; p++) emit(p, found.place[p]);
        return;
    }
#endif
    int32_t key[PLEXUS_K_MAX];
    uint32_t place[PLEXUS_K_MAX];
    for (uint32_t p = 0; p < rows; p++, in.at++) {
        largest<Order>(in, columns, k, key, place);
        emit(p, place);
    }
}

} // namespace gp

#endif
