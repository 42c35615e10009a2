// What a run did in time: changes of states and masks, instructions issued, descriptors begun and ended, beats of HBM.
//
// The pins are those of rtl/base/trace.py. A record is a change, so a steady state costs nothing; with the last of
// `limit` records what follows is summed in buckets. Cycle 0 is the first that the core counts.

#ifndef PLEXUS_TRACE_H
#define PLEXUS_TRACE_H

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core_trace.h"
#include "hbm.h"
#include "pins.h"

namespace plexus {

enum TraceKind : uint16_t { ISSUE = 0, BEGIN = 1, END = 2, STATE = 3, REFUSED = 4, MOVERS = 5 };

struct TraceRecord {
    uint64_t cycle;
    uint32_t value;    // sequence of ISSUE, new state, new mask
    uint16_t kind;
    uint16_t place;    // queue, ring or engine
};

class Trace {
public:
    static constexpr unsigned QUEUES = 5;     // rtl.contract.isa.Queue
    static constexpr unsigned ENGINES = 5;    // rtl.contract.timing.Engine
    static constexpr unsigned STATE_BITS = 4;
    static constexpr unsigned STATES = 1 << STATE_BITS;
    static constexpr unsigned RINGS = 18;    // rtl.base.trace.RINGS_MAX, and those of queues
    static constexpr unsigned MASK_BITS = 16;    // of refused ports and of movers, at most
    static constexpr uint64_t BEATS_CYCLES = 256;
    static constexpr uint64_t COARSE_CYCLES = 4096;
    // Cycles of each engine in each state, refused cycles of each port, busy cycles of each mover.
    using Sums = std::array<uint32_t, ENGINES * STATES + 2 * MASK_BITS>;

    Trace(Vtop& top, uint64_t limit) : cores(top, limit), limit_(limit) {
        running_ = pin<CData>(top, "trace__running");
        state_ = pin<IData>(top, "trace__state");
        refused_ = pin<SData>(top, "trace__refused");
        movers_ = pin<SData>(top, "trace__movers");
        begin_ = pin<IData>(top, "trace__begin");
        end_ = pin<IData>(top, "trace__end");
        for (unsigned q = 0; q < QUEUES; q++) {
            const std::string name = "trace__issue__" + std::to_string(q) + "__";
            valid_[q] = pin<CData>(top, name + "valid");
            sequence_[q] = pin<SData>(top, name + "sequence");
        }
    }

    // A cycle, with everything settled; `hbm` as before it.
    void sample(uint64_t now, const HbmCounters& hbm) {
        if (!*running_) return;
        if (!started) {
            started = true;
            first = now;
            state_before_ = ~*state_;    // each engine's first state is a change
        }
        // The core may stop counting and never start again; cycles are those it counts.
        const uint64_t cycle = cycles++;
        if (cycle && cycle % BEATS_CYCLES == 0) close_bucket(hbm);
        cores.sample(cycle);
        for (unsigned q = 0; q < QUEUES; q++) {
            if (*valid_[q]) add(cycle, *sequence_[q], ISSUE, q);
        }
        if (*begin_ | *end_) {
            for (unsigned r = 0; r < RINGS; r++) {
                if (*begin_ >> r & 1) add(cycle, 0, BEGIN, r);
                if (*end_ >> r & 1) add(cycle, 0, END, r);
            }
        }
        if (coarse_from == UINT64_MAX) {
            if (const uint32_t changed = *state_ ^ state_before_) {
                for (unsigned e = 0; e < ENGINES; e++) {
                    if (changed >> (STATE_BITS * e) & (STATES - 1)) add(cycle, state(e), STATE, e);
                }
                state_before_ = *state_;
            }
            if (*refused_ != refused_before_) add(cycle, refused_before_ = *refused_, REFUSED, 0);
            if (*movers_ != movers_before_) add(cycle, movers_before_ = *movers_, MOVERS, 0);
            if (records.size() >= limit_) coarse_from = cycle + 1;
        } else {
            if ((cycle - coarse_from) % COARSE_CYCLES == 0) coarse.push_back({});
            Sums& sums = coarse.back();
            for (unsigned e = 0; e < ENGINES; e++) sums[STATES * e + state(e)]++;
            uint32_t* masks = sums.data() + ENGINES * STATES;
            for (unsigned mask = *refused_; mask; mask &= mask - 1) masks[__builtin_ctz(mask)]++;
            for (unsigned mask = *movers_; mask; mask &= mask - 1) masks[MASK_BITS + __builtin_ctz(mask)]++;
        }
    }

    // The run is over: the beats of the last bucket, which may be short.
    void finish(const HbmCounters& hbm) {
        if (beats.size() / 2 < (cycles + BEATS_CYCLES - 1) / BEATS_CYCLES) close_bucket(hbm);
    }

    bool started = false;
    uint64_t first = 0;     // cycle of the driver that is number 0
    uint64_t cycles = 0;    // that the core counted
    uint64_t coarse_from = UINT64_MAX;
    uint64_t lost = 0;    // issues, begins and ends behind the limit
    std::vector<TraceRecord> records;
    std::vector<uint32_t> beats;    // read and written, of each bucket
    std::vector<Sums> coarse;
    CoreTrace cores;    // with as many records of its own, so that programs take none of the others

private:
    unsigned state(unsigned engine) const { return *state_ >> (STATE_BITS * engine) & (STATES - 1); }

    void add(uint64_t cycle, uint32_t value, TraceKind kind, unsigned place) {
        if (coarse_from != UINT64_MAX) {
            lost++;
            return;
        }
        records.push_back({cycle, value, kind, uint16_t(place)});
    }

    void close_bucket(const HbmCounters& hbm) {
        beats.push_back(uint32_t(hbm.read_beats - at_bucket_.read_beats));
        beats.push_back(uint32_t(hbm.write_beats - at_bucket_.write_beats));
        at_bucket_ = hbm;
    }

    uint64_t limit_;
    const CData* running_;
    const IData* state_;
    const SData* refused_;
    const SData* movers_;
    const IData* begin_;
    const IData* end_;
    const CData* valid_[QUEUES];
    const SData* sequence_[QUEUES];
    uint32_t state_before_ = 0;
    uint16_t refused_before_ = 0;
    uint16_t movers_before_ = 0;
    HbmCounters at_bucket_{};    // behind the last bucket
};

}  // namespace plexus

#endif
