// Who sends what to whom: patterns over relabelled ports, arrivals, and the queues of a source.

#ifndef PLEXUS_TRAFFIC_H
#define PLEXUS_TRAFFIC_H

#include <algorithm>
#include <array>
#include <deque>
#include <numeric>
#include <vector>

#include "link_end.h"
#include "units.h"

namespace plexus {

// In the order of sim.native.switch.TRAFFIC.
enum class Pattern { UNIFORM, PERMUTATION, HOTSPOT, DIAGONAL, UNBALANCED, PROBE };
// Which classes a source sends: all; its own one; the first half of the sources all, the others their own one.
enum class ClassInputs { SAME, DIFFERENT, MIXED };

struct TrafficSettings {
    Pattern pattern;
    ClassInputs class_inputs;
    unsigned ports, senders, classes, flits_min, flits_max, backlog, strict_class, strict_cap;
    double load, responses;
    std::array<unsigned, wire::CLASSES> weights;
    uint64_t seed;
    std::vector<std::vector<unsigned>> endpoints;  // by port
    unsigned silent;                               // port whose source sends nothing, or none
};

// The pattern speaks of labels; each seed gives the ports other ones, as sources and as destinations.
class Labels {
public:
    Labels(const TrafficSettings& s) : settings_(s), input_(s.ports), port_of_(s.ports) {
        Random random{s.seed ^ 0x6c6162656c73ull};
        std::vector<unsigned> inputs = shuffled(random);
        for (unsigned n = 0; n < s.ports; n++) input_[inputs[n]] = n;
        do port_of_ = shuffled(random);
        while (s.pattern == Pattern::PERMUTATION && to_itself());
    }
    bool sends(unsigned port) const {
        return port != settings_.silent && (settings_.pattern != Pattern::HOTSPOT || input_[port] < settings_.senders);
    }
    unsigned label(unsigned port) const { return input_[port]; }
    // The port that the next unit of source `port` goes to.
    unsigned destination(unsigned port, Random& random) const {
        const unsigned n = settings_.ports, mine = input_[port];
        switch (settings_.pattern) {
            case Pattern::PERMUTATION: return port_of_[mine];
            case Pattern::HOTSPOT: return port_of_[0];
            case Pattern::DIAGONAL: return port_of_[(mine + (random.below(3) == 0)) % n];
            case Pattern::UNBALANCED: return random.below(2) ? port_of_[mine] : random.below(n);
            default: return random.below(n);
        }
    }

private:
    std::vector<unsigned> shuffled(Random& random) const {
        std::vector<unsigned> all(settings_.ports);
        std::iota(all.begin(), all.end(), 0u);
        for (unsigned n = settings_.ports; n > 1; n--) std::swap(all[n - 1], all[random.below(n)]);
        return all;
    }
    bool to_itself() const {
        for (unsigned p = 0; p < settings_.ports; p++) {
            if (port_of_[input_[p]] == p) return true;
        }
        return false;
    }

    const TrafficSettings& settings_;
    std::vector<unsigned> input_;    // label by source port
    std::vector<unsigned> port_of_;  // by label of a destination
};

// Queues of one source by class and kind, and whose turn it is (docs/framing.md).
class SourceQueues {
public:
    explicit SourceQueues(const TrafficSettings& s) : settings_(s) {
        for (unsigned c = 0; c < s.classes; c++) deficit_[c] = int(s.weights[c]);
    }
    void push(const Unit& u) {
        queues_[2 * u.cls + u.kind].push_back(u);
        flits += u.flits;
    }
    size_t waiting(unsigned cls, unsigned kind) const { return queues_[2 * cls + kind].size(); }
    unsigned flits = 0;

    // Takes the unit that goes next, if the link has credits for one.
    bool pop(const LinkEnd& link, Unit& unit) {
        unsigned ready = 0, held = 0;
        for (unsigned c = 0; c < settings_.classes; c++) {
            if (fits(link, c, 0) || fits(link, c, 1)) ready |= 1u << c;
            if (!queues_[2 * c].empty() || !queues_[2 * c + 1].empty()) held |= 1u << c;
        }
        if (!ready) return false;
        const unsigned strict = settings_.strict_class < settings_.classes ? 1u << settings_.strict_class : 0;
        const bool others = ready & ~strict;
        const bool first = (ready & strict) && (!others || strict_flits_ < settings_.strict_cap);
        const unsigned c = first ? settings_.strict_class : by_deficit(ready & ~strict);
        const unsigned kind = fits(link, c, 1 - last_kind_[c]) ? 1 - last_kind_[c] : last_kind_[c];
        last_kind_[c] = kind;
        auto& queue = queues_[2 * c + kind];
        unit = queue.front();
        queue.pop_front();
        flits -= unit.flits;
        if (!first) deficit_[c] -= int(unit.flits);
        if (strict && others && (held & strict)) {
            strict_flits_ += first ? unit.flits : 0;
            if ((window_ += unit.flits) >= 64) window_ = strict_flits_ = 0;
        }
        return true;
    }

private:
    bool fits(const LinkEnd& link, unsigned cls, unsigned kind) const {
        const auto& queue = queues_[2 * cls + kind];
        return !queue.empty() && link.credits(cls, kind) >= queue.front().flits;
    }
    unsigned by_deficit(unsigned ready) {
        for (;;) {
            for (unsigned k = 1; k <= settings_.classes; k++) {
                const unsigned c = (turn_ + k) % settings_.classes;
                if ((ready >> c & 1) && deficit_[c] > 0) return turn_ = c;
            }
            for (unsigned c = 0; c < settings_.classes; c++) {
                const int weight = int(settings_.weights[c]);
                deficit_[c] = std::min(deficit_[c] + weight, weight);
            }
        }
    }

    const TrafficSettings& settings_;
    std::array<std::deque<Unit>, 2 * wire::CLASSES> queues_;
    std::array<int, wire::CLASSES> deficit_{};
    std::array<unsigned, wire::CLASSES> last_kind_{};
    unsigned turn_ = 0, strict_flits_ = 0, window_ = 0;
};

}  // namespace plexus

#endif
