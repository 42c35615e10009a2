// What was sent through a switch and what came out: order, bytes, place and time of every unit.

#ifndef PLEXUS_LEDGER_H
#define PLEXUS_LEDGER_H

#include <array>
#include <set>
#include <unordered_map>
#include <vector>

#include "units.h"

namespace plexus {

constexpr unsigned PORTS_MAX = 72;  // rtl.contract.switch_config
constexpr unsigned QUEUES = 2 * wire::CLASSES;
constexpr unsigned BINS = 1 << 14;   // cycles of latency that are told apart
constexpr unsigned PHASES = 32;      // cycles of a flit time, at most
constexpr unsigned PHASE_BINS = 256;

// In the order of sim.native.switch.SwitchCounts.
struct LedgerCounts {
    uint64_t units_sent, units_delivered, flits_delivered, lost, unsettled, duplicated, reordered, corrupted, misdelivered;
    uint64_t foreign_sent, outstanding, latency_max;
    uint64_t by_class[wire::CLASSES];
    uint64_t by_source[PORTS_MAX];  // flits delivered of each source
    uint64_t by_output[PORTS_MAX];  // flits delivered at each port
};

class Ledger {
public:
    Ledger(unsigned ports, uint64_t seed, const std::vector<unsigned>& routes, const std::vector<unsigned>& partitions)
        : ports_(ports),
          seed_(seed),
          routes_(routes),
          partitions_(partitions),
          streams_(size_t(ports) * ports * QUEUES),
          open_(size_t(ports) * QUEUES),
          touched_(ports),
          begun_(ports, std::vector<uint64_t>(STAMPS)),
          latency(wire::CLASSES, std::vector<uint64_t>(BINS)),
          by_phase(PHASES, std::vector<uint64_t>(PHASE_BINS)) {}

    // A unit is made: gives it its number.
    void number(Unit& u) {
        Stream& s = stream(u.source, routes_[u.destination], 2 * u.cls + u.kind);
        u.number = s.next++;
        counts.units_sent++;
        counts.foreign_sent += foreign(u.source, routes_[u.destination]);
    }
    // Its first beat is put on the pins of the switch.
    void begun(unsigned source, uint64_t stamp, uint64_t cycle) { begun_[source][stamp % STAMPS] = cycle; }
    // The session of a port has ended: what goes to or comes from it may be dropped and told.
    void touch(unsigned port) { touched_[port] = true; }
    void close(unsigned port) {
        for (unsigned q = 0; q < QUEUES; q++) open_[port * QUEUES + q].left = 0;
    }

    // A flit came at `port`, whose first beat was on the pins in `cycle`.
    void accepted(unsigned port, const uint8_t* flit, uint64_t cycle) {
        const uint32_t header = wire::header_of(flit);
        const unsigned q = unsigned(2 * wire::FLIT_HEADER_class_.of(header) + wire::FLIT_HEADER_kind.of(header));
        Open& open = open_[port * QUEUES + q];
        if (wire::FLIT_HEADER_head.of(header)) {
            open.unit = unit_of(flit);
            open.left = open.unit.flits;
            open.cycle = cycle;
            const Unit& u = open.unit;
            if (u.source >= ports_ || u.destination >= routes_.size() || !same_flit(u, seed_, 0, flit)) {
                open.left = 0;
                counts.corrupted++;
                return;
            }
        } else if (!open.left) {
            counts.corrupted++;
            return;
        } else if (!same_flit(open.unit, seed_, open.unit.flits - open.left, flit)) {
            open.left = 0;
            counts.corrupted++;
            return;
        }
        counts.flits_delivered++;
        counts.by_class[open.unit.cls]++;
        counts.by_source[open.unit.source]++;
        counts.by_output[port]++;
        if (--open.left == 0) whole(port, open.unit, open.cycle);
    }

    // Units that are on their way or gone, between ports whose sessions have held; others may have been dropped.
    void settle() {
        counts.outstanding = counts.lost = counts.unsettled = 0;
        for (unsigned from = 0; from < ports_; from++) {
            for (unsigned to = 0; to < ports_; to++) {
                if (foreign(from, to)) continue;
                for (unsigned q = 0; q < QUEUES; q++) {
                    const Stream& s = stream(from, to, q);
                    const auto gaps = missing_.find(index(from, to, q));
                    const uint64_t gone = gaps == missing_.end() ? 0 : gaps->second.size();
                    if (touched_[from] || touched_[to]) {
                        counts.unsettled += s.next - s.expected + gone;
                    } else {
                        counts.outstanding += s.next - s.expected;
                        counts.lost += gone;
                    }
                }
            }
        }
    }

    void forget_latency() {
        for (auto& bins : latency) std::fill(bins.begin(), bins.end(), 0);
        for (auto& bins : by_phase) std::fill(bins.begin(), bins.end(), 0);
        counts.latency_max = 0;
    }

    LedgerCounts counts{};
    unsigned flit_cycles = 1;

private:
    static constexpr unsigned STAMPS = 1 << 13;  // more than a source can have under way
    struct Stream {
        uint64_t next = 0, expected = 0;
    };
    struct Open {
        Unit unit{};
        unsigned left = 0;  // flits that must follow
        uint64_t cycle = 0;
    };

    size_t index(unsigned from, unsigned to, unsigned q) const { return (size_t(from) * ports_ + to) * QUEUES + q; }
    Stream& stream(unsigned from, unsigned to, unsigned q) { return streams_[index(from, to, q)]; }
    bool foreign(unsigned from, unsigned to) const { return partitions_[from] != partitions_[to]; }

    void whole(unsigned port, const Unit& u, uint64_t cycle) {
        if (routes_[u.destination] != port || foreign(u.source, port)) {
            counts.misdelivered++;
            return;
        }
        const unsigned q = 2 * u.cls + u.kind;
        Stream& s = stream(u.source, port, q);
        if (u.number >= s.next) {
            counts.corrupted++;
            return;
        }
        if (u.number < s.expected) {
            auto& gone = missing_[index(u.source, port, q)];
            if (gone.erase(u.number) == 0) {
                counts.duplicated++;
                return;
            }
            counts.reordered++;
        } else {
            for (; s.expected < u.number; s.expected++) missing_[index(u.source, port, q)].insert(s.expected);
            s.expected++;
        }
        counts.units_delivered++;
        const uint64_t begun = begun_[u.source][u.stamp % STAMPS];
        const uint64_t took = cycle - begun;
        latency[u.cls][std::min<uint64_t>(took, BINS - 1)]++;
        by_phase[begun % flit_cycles % PHASES][std::min<uint64_t>(took, PHASE_BINS - 1)]++;
        counts.latency_max = std::max(counts.latency_max, took);
    }

    unsigned ports_;
    uint64_t seed_;
    const std::vector<unsigned>&routes_, &partitions_;
    std::vector<Stream> streams_;
    std::vector<Open> open_;
    std::vector<bool> touched_;
    std::vector<std::vector<uint64_t>> begun_;
    std::unordered_map<size_t, std::set<uint64_t>> missing_;  // numbers below `expected` that have not come, by stream

public:
    std::vector<std::vector<uint64_t>> latency;   // by class
    std::vector<std::vector<uint64_t>> by_phase;  // by the cycle of a flit time in which a unit began to come
};

}  // namespace plexus

#endif
