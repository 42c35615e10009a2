/* Operands of the running instruction as C++ objects: the partitions of a pattern that this core serves. */
#ifndef PLEXUS_VIEW_H
#define PLEXUS_VIEW_H

#include <plexus/gp.h>

namespace gp {

/* Elements of type T of operand GP_SRC0, GP_SRC1 or GP_DST. Partitions are those of this core, counted from 0. */
template <typename T>
class View {
  public:
    explicit View(uint32_t operand) : pattern_(gp_pattern_of(operand)) {
        const uint32_t lanes = gp_lanes(), base = gp_core() * lanes, end = base + lanes;
        const uint32_t first = pattern_.partition_start, last = first + pattern_.partition_count;
        begin_ = (first < base ? base : first < end ? first : end) - base;
        end_ = (last < base ? base : last < end ? last : end) - base;
    }

    const gp_pattern &pattern() const { return pattern_; }
    /* First partition, and the one behind the last; equal if the operand lies in other cores' partitions. */
    uint32_t begin() const { return begin_; }
    uint32_t end() const { return end_; }
    /* Elements of an axis, innermost first, and of all of a partition. */
    uint32_t count(uint32_t axis = 0) const { return pattern_.count[axis]; }
    uint32_t elements() const { return count(0) * count(1) * count(2) * count(3); }

    /* One element; indices innermost first. */
    T &operator()(uint32_t partition, uint32_t i0, uint32_t i1 = 0, uint32_t i2 = 0, uint32_t i3 = 0) const {
        return *static_cast<T *>(gp_row(partition, byte(i0, i1, i2, i3)));
    }
    /* The first element of a partition; the others of the innermost axis follow if their step is 1. */
    T *row(uint32_t partition) const { return static_cast<T *>(gp_row(partition, pattern_.offset)); }
    /* Element i0 of all partitions of this core, one behind the other: what a vector register holds. */
    T *lanes(uint32_t i0, uint32_t i1 = 0, uint32_t i2 = 0, uint32_t i3 = 0) const {
        static_assert(sizeof(T) == 4, "a lane has 32 bits");
        return static_cast<T *>(gp_lane_row(byte(i0, i1, i2, i3)));
    }

  private:
    uint32_t byte(uint32_t i0, uint32_t i1, uint32_t i2, uint32_t i3) const {
        const int32_t element = int32_t(i0) * pattern_.step[0] + int32_t(i1) * pattern_.step[1] +
                                int32_t(i2) * pattern_.step[2] + int32_t(i3) * pattern_.step[3];
        return pattern_.offset + uint32_t(element * int32_t(sizeof(T)));
    }

    gp_pattern pattern_;
    uint32_t begin_, end_;
};

} // namespace gp

#endif
