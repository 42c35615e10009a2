/* What operators share: arguments, operands as columns of the partitions that a core serves, the order of numbers. */
#ifndef PLEXUS_LIB_COLUMNS_H
#define PLEXUS_LIB_COLUMNS_H

#include <plexus/operators.h>
#include <plexus/view.h>

/* An argument by its name, as in GP_OPERATOR(TOPK_K); none crosses a word. */
#define GP_OPERATOR(field)                                                                                       \
    (gp_argument_word(PLEXUS_INSTRUCTION_IMM1_LSB / 32 + PLEXUS_##field##_LSB / 32) >> PLEXUS_##field##_LSB % 32 & \
     uint32_t((uint64_t(1) << PLEXUS_##field##_BITS) - 1))

#ifdef __riscv_vector
#include <riscv_vector.h>
#endif

/* Before a loop over partitions: no turn needs what another one stores, so turns may become lanes of a vector. */
#ifdef __riscv_vector
#define GP_LANES _Pragma("clang loop vectorize(assume_safety)")
#else
#define GP_LANES
#endif

namespace gp {

#ifdef __riscv_vector
using Vector = vuint32m8_t;
using SignedVector = vint32m8_t;
using Mask = vbool4_t;
#endif

/* A column after the other. */
template <typename T>
struct Walk {
    T *at;
    int32_t step;
    void next() { at += step; }
    T &operator[](uint32_t partition) const { return at[partition]; }
};

/* An operand of 32-bit elements, whatever they are. */
class Operand {
  public:
    explicit Operand(uint32_t operand) {
        const View<uint32_t> view(operand);
        const gp_pattern &pattern = view.pattern();
        const uint32_t lanes = gp_lanes();
        first_ = PLEXUS_REGION_SBUF_LANES + (pattern.offset / 4 * lanes + view.begin()) * 4;
        for (int axis = 0; axis < 4; axis++) {
            step[axis] = pattern.step[axis] * int32_t(lanes);
            count[axis] = pattern.count[axis];
        }
        start = pattern.partition_start;
        rows = view.end() - view.begin();
        partitions = pattern.partition_count;
        number = gp_core() * lanes + view.begin() - pattern.partition_start;
        dtype = pattern.dtype;
    }

    uint32_t start;      /* its first partition, in all of SBUF */
    uint32_t rows;       /* partitions of this core */
    uint32_t number;     /* the first of them, counted from the first of the operand */
    uint32_t partitions; /* of the operand, in all cores */
    uint32_t dtype;
    uint32_t count[4]; /* axes, innermost first */
    int32_t step[4];   /* between neighbours of an axis */

  protected:
    uint32_t first_;
};

/* A column of an operand: its partitions of this core lie one behind the other. Loops over columns with one over
 * partitions inside become vector instructions. */
template <typename T>
struct Columns : Operand {
    using Operand::Operand;

    T *operator[](uint32_t i) const { return first() + int32_t(i) * step[0]; }
    /* From a column on, or from indices of the outer axes. */
    Walk<T> walk(uint32_t i = 0) const { return {(*this)[i], step[0]}; }
    Walk<T> walk(uint32_t i1, uint32_t i2, uint32_t i3) const {
        return {first() + int32_t(i1) * step[1] + int32_t(i2) * step[2] + int32_t(i3) * step[3], step[0]};
    }

  private:
    T *first() const { return reinterpret_cast<T *>(first_); }
};

/* Memory of the operator that runs; it holds anything when that begins. A row of lanes begins there. */
#ifdef __riscv_vector
constexpr uint32_t SCRATCH_WORDS = 128; /* of 16 lanes 8 rows */
#else
constexpr uint32_t SCRATCH_WORDS = PLEXUS_BINS_MAX;
#endif
extern uint32_t scratch[SCRATCH_WORDS];

constexpr uint32_t SHARED_WORDS = PLEXUS_SHARED_BYTES / 4;

/* Memory of all cores. Two halves in turn, with a barrier after each is written: who writes a half again has passed a
 * barrier that every reader of it reached later. */
void meet(); /* the barrier, once in the image */
inline uint32_t *shared(uint32_t word = 0) { return static_cast<uint32_t *>(gp_shared(4 * word)); }

} // namespace gp

#endif
