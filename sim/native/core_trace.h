// What GPSIMD cores did in time. Their counters count cycles of the GPSIMD clock, so records know how many there were.

#ifndef PLEXUS_CORE_TRACE_H
#define PLEXUS_CORE_TRACE_H

#include <array>
#include <cstdint>
#include <vector>

#include "pins.h"

namespace plexus {

struct CoreRecord {
    uint64_t cycle;     // of the run, in tensor cycles
    uint32_t states;    // of all cores from it on, STATE_BITS each
    uint32_t passed;    // GPSIMD cycles since the record before
};

class CoreTrace {
public:
    static constexpr unsigned CORES = 8;    // rtl.contract.gpsimd.CORES_MAX
    static constexpr unsigned STATE_BITS = 4;
    static constexpr unsigned STATES = 1 << STATE_BITS;

    CoreTrace(Vtop& top, uint64_t limit) : limit_(limit) {
        tick_ = pin<CData>(top, "trace__core_tick");
        state_ = pin<IData>(top, "trace__core_state");
    }

    // A cycle that the core counts, number `cycle`; a GPSIMD cycle ends with one in which there is a tick. All cores
    // share a record: eight that are busy rarely stay as they are, so it is at most one a GPSIMD cycle.
    void sample(uint64_t cycle) {
        if (!*tick_) return;
        note();
        begin_ = cycle + 1;
    }

    uint64_t summed_from = UINT64_MAX;    // no record from this cycle on
    uint64_t recorded = 0;                // GPSIMD cycles before it
    std::vector<CoreRecord> records;
    std::array<uint64_t, CORES * STATES> sums{};    // GPSIMD cycles of each core in each state from there on

private:
    void note() {
        if (summed_from != UINT64_MAX) {
            for (unsigned k = 0; k < CORES; k++) sums[STATES * k + (*state_ >> (STATE_BITS * k) & (STATES - 1))]++;
            return;
        }
        if (*state_ != before_ || records.empty() || passed_ == UINT32_MAX) {
            if (records.size() >= limit_) {
                summed_from = begin_;
                note();
                return;
            }
            records.push_back({begin_, before_ = *state_, passed_});
            passed_ = 0;
        }
        passed_++;
        recorded++;
    }

    uint64_t limit_;
    const CData* tick_;
    const IData* state_;
    uint64_t begin_ = 0;    // of the GPSIMD cycle that is under way
    uint32_t before_ = 0;
    uint32_t passed_ = 0;
};

}  // namespace plexus

#endif
