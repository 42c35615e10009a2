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

template <typename Op>
static void apply() {
    const Op op;
    const gp::Columns<const uint32_t> x(GP_SRC0), y(GP_SRC1);
    const gp::Columns<uint32_t> to(GP_DST);
    const bool by_number = GP_OPERATOR(INTEGER_BY_NUMBER);
    const uint32_t number = GP_OPERATOR(INTEGER_NUMBER);
    auto a = x.walk(), b = by_number ? a : y.walk();
    auto out = to.walk();
    const gp::Pass pass(to.count[0], to.rows, a, b, out);
    for (uint32_t i = 0; i < pass.columns; i++, a.next(), b.next(), out.next()) {
#ifdef __riscv_vector
        for (uint32_t p = 0, vl; p < pass.rows; p += vl) {
            vl = gp::length(pass.rows - p);
            const gp::Vector one = gp::fetch(&a[p], vl);
            gp::put(&out[p], by_number ? op(one, number, vl) : op(one, gp::fetch(&b[p], vl), vl), vl);
        }
#else
        for (uint32_t p = 0; p < pass.rows; p++) out[p] = op(a[p], by_number ? number : b[p]);
#endif
    }
}

GP_ENTRY(integer) {
    switch (GP_OPERATOR(INTEGER_OP)) {
        case PLEXUS_INTEGER_ADD: apply<Add>(); break;
        case PLEXUS_INTEGER_SUBTRACT: apply<Subtract>(); break;
        case PLEXUS_INTEGER_MULTIPLY: apply<Multiply>(); break;
        case PLEXUS_INTEGER_BIT_AND: apply<And>(); break;
        case PLEXUS_INTEGER_BIT_OR: apply<Or>(); break;
        case PLEXUS_INTEGER_BIT_XOR: apply<Xor>(); break;
        case PLEXUS_INTEGER_SHIFT_LEFT: apply<ShiftLeft>(); break;
        case PLEXUS_INTEGER_SHIFT_RIGHT: apply<ShiftRight>(); break;
        case PLEXUS_INTEGER_SHIFT_RIGHT_SIGNED: apply<ShiftRightSigned>(); break;
        case PLEXUS_INTEGER_MAX: apply<Max>(); break;
        default: apply<Min>();
    }
    return 0;
}
