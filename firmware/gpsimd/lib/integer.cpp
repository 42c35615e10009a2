// dst = src0 op y, 32-bit integers that wrap around; y is src1 or a number.
#include "lanes.h"

#ifdef __riscv_vector
using gp::with_sign, gp::without_sign;
static int32_t with_sign(uint32_t value) { return int32_t(value); }
#define GP_VECTOR_OPERATION(vector) \
    template <typename Y>           \
    gp::Vector operator()(gp::Vector a, Y b, size_t vl) const { return vector; }
#else
#define GP_VECTOR_OPERATION(vector)
#endif

/* What it does to elements, and to as many of them as vector registers hold. */
#define GP_OPERATION(name, scalar, vector)                                     \
    struct name {                                                              \
        uint32_t operator()(uint32_t a, uint32_t b) const { return scalar; }   \
        GP_VECTOR_OPERATION(vector)                                            \
    }
GP_OPERATION(Add, a + b, __riscv_vadd(a, b, vl));
GP_OPERATION(Subtract, a - b, __riscv_vsub(a, b, vl));
GP_OPERATION(Multiply, a * b, __riscv_vmul(a, b, vl));
GP_OPERATION(And, a &b, __riscv_vand(a, b, vl));
GP_OPERATION(Or, a | b, __riscv_vor(a, b, vl));
GP_OPERATION(Xor, a ^ b, __riscv_vxor(a, b, vl));
GP_OPERATION(ShiftLeft, a << (b & 31), __riscv_vsll(a, b, vl));
GP_OPERATION(ShiftRight, a >> (b & 31), __riscv_vsrl(a, b, vl));
GP_OPERATION(ShiftRightSigned, uint32_t(int32_t(a) >> (b & 31)), without_sign(__riscv_vsra(with_sign(a), b, vl)));
GP_OPERATION(Max, int32_t(a) > int32_t(b) ? a : b, without_sign(__riscv_vmax(with_sign(a), with_sign(b), vl)));
GP_OPERATION(Min, int32_t(a) < int32_t(b) ? a : b, without_sign(__riscv_vmin(with_sign(a), with_sign(b), vl)));

/* `count` elements; without b, y is `number`. */
using Row = void(uint32_t *out, const uint32_t *a, const uint32_t *b, uint32_t count, uint32_t number);

template <typename Op>
static void row(uint32_t *out, const uint32_t *a, const uint32_t *b, uint32_t count, uint32_t number) {
    const Op op;
#ifdef __riscv_vector
    if (!count) return;
    if (b)
        do {
            const size_t vl = gp::length(count);
            const gp::Vector x = gp::fetch(a, vl);
            const uint32_t *const beside = b;
            a += vl, b += vl, count -= vl;
            gp::before(a), gp::before(b), gp::before(count);
            gp::put(out, op(x, gp::fetch(beside, vl), vl), vl);
            out += vl;
        } while (count);
    else
        for (size_t vl; count; count -= vl, out += vl, a += vl) {
            vl = gp::length(count);
            gp::put(out, op(gp::fetch(a, vl), number, vl), vl);
        }
#else
    for (uint32_t p = 0; p < count; p++) out[p] = op(a[p], b ? b[p] : number);
#endif
}

static Row *row_of(uint32_t operation) {
    switch (operation) {
        case PLEXUS_INTEGER_ADD: return row<Add>;
        case PLEXUS_INTEGER_SUBTRACT: return row<Subtract>;
        case PLEXUS_INTEGER_MULTIPLY: return row<Multiply>;
        case PLEXUS_INTEGER_BIT_AND: return row<And>;
        case PLEXUS_INTEGER_BIT_OR: return row<Or>;
        case PLEXUS_INTEGER_BIT_XOR: return row<Xor>;
        case PLEXUS_INTEGER_SHIFT_LEFT: return row<ShiftLeft>;
        case PLEXUS_INTEGER_SHIFT_RIGHT: return row<ShiftRight>;
        case PLEXUS_INTEGER_SHIFT_RIGHT_SIGNED: return row<ShiftRightSigned>;
        case PLEXUS_INTEGER_MAX: return row<Max>;
        default: return row<Min>;
    }
}

GP_ENTRY(integer) {
    Row *const row = row_of(GP_OPERATOR(INTEGER_OP));
    const gp::Columns<const uint32_t> x(GP_SRC0), y(GP_SRC1);
    const gp::Columns<uint32_t> to(GP_DST);
    const bool by_number = GP_OPERATOR(INTEGER_BY_NUMBER);
    const uint32_t number = GP_OPERATOR(INTEGER_NUMBER);
    auto a = x.walk(), b = by_number ? a : y.walk();
    auto out = to.walk();
    const gp::Pass pass(to.count[0], to.rows, a, b, out);
    for (uint32_t i = 0; i < pass.columns; i++, a.next(), b.next(), out.next())
        row(out.at, a.at, by_number ? nullptr : b.at, pass.rows, number);
    return 0;
}
