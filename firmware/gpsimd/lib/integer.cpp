// dst = src0 op y, 32-bit integers that wrap around; y is src1 or a number.
#include "columns.h"

constexpr uint32_t LANES_MAX = 32;

template <typename Op>
static void apply(Op op) {
    const gp::Columns<const uint32_t> x(GP_SRC0), y(GP_SRC1);
    const gp::Columns<uint32_t> to(GP_DST);
    uint32_t number[LANES_MAX];
    auto a = x.walk(), b = y.walk();
    auto out = to.walk();
    if (GP_OPERATOR(INTEGER_BY_NUMBER)) {
        for (uint32_t p = 0; p < to.rows; p++) number[p] = GP_OPERATOR(INTEGER_NUMBER);
        b = {number, 0};
    }
    const uint32_t columns = to.count[0], rows = to.rows;
    for (uint32_t i = 0; i < columns; i++, a.next(), b.next(), out.next())
        GP_LANES
        for (uint32_t p = 0; p < rows; p++) out[p] = op(a[p], b[p]);
}

GP_ENTRY(integer) {
    using u = uint32_t;
    using s = int32_t;
    switch (GP_OPERATOR(INTEGER_OP)) {
        case PLEXUS_INTEGER_ADD: apply([](u a, u b) { return a + b; }); break;
        case PLEXUS_INTEGER_SUBTRACT: apply([](u a, u b) { return a - b; }); break;
        case PLEXUS_INTEGER_MULTIPLY: apply([](u a, u b) { return a * b; }); break;
        case PLEXUS_INTEGER_BIT_AND: apply([](u a, u b) { return a & b; }); break;
        case PLEXUS_INTEGER_BIT_OR: apply([](u a, u b) { return a | b; }); break;
        case PLEXUS_INTEGER_BIT_XOR: apply([](u a, u b) { return a ^ b; }); break;
        case PLEXUS_INTEGER_SHIFT_LEFT: apply([](u a, u b) { return a << (b & 31); }); break;
        case PLEXUS_INTEGER_SHIFT_RIGHT: apply([](u a, u b) { return a >> (b & 31); }); break;
        case PLEXUS_INTEGER_SHIFT_RIGHT_SIGNED: apply([](u a, u b) { return u(s(a) >> (b & 31)); }); break;
        case PLEXUS_INTEGER_MAX: apply([](u a, u b) { return s(a) > s(b) ? a : b; }); break;
        default: apply([](u a, u b) { return s(a) < s(b) ? a : b; });
    }
    return 0;
}
