// Two ports with their lanes and the wires between them: saturating traffic, faults by rate, a check of every packet.
//
// What an end puts on its lanes in a link cycle reaches the partner `delay` flit times later, damaged as the rates say.
// Packets carry (sender, class, kind, number) in their header, and bytes that follow from it, so that the receiving end
// knows what must come next.

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>

#include "port_model.h"
#include "wires.h"

namespace {

using plexus::LANES_MAX;
using plexus::Random;
using plexus::WORD;
using plexus::Words;

thread_local std::string error;

constexpr unsigned CLASSES = 8;
constexpr unsigned QUEUES = 2 * CLASSES;
constexpr unsigned LATENCY_BINS = 1 << 14;  // of a cycle; the last one holds all beyond
constexpr unsigned HANDED = 1 << 14;        // numbers of a queue whose handing over is remembered: more than are ever under way
constexpr unsigned LANE_DELAY = 2;  // cycles from tx_flit to the first word of that flit on the lanes

// In the order in which sim/native/ports.py gives them.
struct Settings {
    double flit_error_rate, burst_rate;
    uint64_t burst_bytes, lanes, physical, numbers, packet_bytes, classes, responses, delay, kill_lane, kill_time, seed, burst_lanes;
};

struct Counts {
    uint64_t cycles, sent, delivered, lost, duplicated, reordered, corrupted, payload_bytes, payload_flits, resent;
    uint64_t damaged, bursts, refused, malformed, corrections, replays, round_trip_sum, round_trips, ack_sum, acks, outstanding, unresolved;
    uint64_t spurious, retrained, downs, longest_gap, width, latency_max, flits, by_class[CLASSES];
};

std::vector<uint8_t> packet(unsigned end, unsigned cls, unsigned kind, uint64_t number, unsigned bytes) {
    std::vector<uint8_t> p(plexus::PACKET_HEADER + bytes, 0);
    p[0] = kind ? 5 : 0;  // READ_RESPONSE, WRITE
    p[1] = uint8_t(bytes);
    p[2] = uint8_t((bytes >> 8 & 3) | (number & 63) << 2);
    p[3] = uint8_t((number >> 6 & 15) | (end + 1) << 4);
    for (unsigned i = 0; i < 5; i++) p[5 + i] = uint8_t(number >> 8 * i);
    Random random{number * 64 + end * 32 + cls * 2 + kind};
    for (unsigned i = 0; i < bytes; i++) p[plexus::PACKET_HEADER + i] = uint8_t(random.next() >> 32);
    return p;
}

uint64_t number_of(const std::vector<uint8_t>& p) {
    uint64_t n = 0;
    for (unsigned i = 0; i < 5; i++) n |= uint64_t(p[5 + i]) << 8 * i;
    return n;
}

class LanePort : public plexus::PortModel {
public:
    LanePort(uint16_t session, unsigned lanes)
        : PortModel(session),
          bytes_(WORD * lanes),
          tx_(static_cast<const uint8_t*>(plexus::find_pin(top(), "tx").at)),
          rx_(static_cast<uint8_t*>(plexus::find_pin(top(), "rx").at)) {
        if (plexus::find_pin(top(), "tx").width != 8 * bytes_) throw std::runtime_error("the port has other lanes");
    }
    void put(const Words& words) {
        top().rx_valid = words.valid;
        std::memcpy(rx_, words.bytes.data(), bytes_);
    }
    Words get() {
        Words words;
        words.valid = top().tx_valid;
        std::memcpy(words.bytes.data(), tx_, bytes_);
        return words;
    }
    uint32_t count(const char* name) { return *plexus::pin<IData>(top(), name); }

private:
    unsigned bytes_;
    const uint8_t* tx_;
    uint8_t* rx_;
};

// One end: its port, its wires to the partner, what it has sent, and what its partner must deliver next.
struct End {
    explicit End(unsigned physical) : aim(physical) {}
    std::unique_ptr<LanePort> port;
    plexus::Aim aim;
    uint64_t marker_in_flight = 0, marker_number = 0, marker_replaying = 0;  // of this end when its last marker went
    std::vector<Words> wires;
    std::array<uint64_t, QUEUES> next{};
    std::array<std::vector<uint64_t>, QUEUES> handed{};  // cycle in which a packet was handed to the port, by number
    std::array<uint64_t, QUEUES> expected{};       // of the partner's packets
    std::array<std::set<uint64_t>, QUEUES> missing;  // numbers below it that have not come
    std::array<uint64_t, 1024> last_sent{};        // cycle in which a flit's number was last put on its way
    unsigned newest = 0, acknowledged = 0;
    bool replaying = false;
    uint64_t last_delivery = 0;
    // The flits being damaged: cycles in which they are on the lanes, and how.
    uint64_t refuse_from = 1, refuse_to = 0;
    uint64_t burst_from = 1, burst_to = 0;
    unsigned burst_lane = 0, burst_first = 0;
};

class Pair {
public:
    explicit Pair(const Settings& s)
        : settings_(s),
          flit_cycles_(plexus::FLIT / (WORD * unsigned(s.lanes))),
          random_{s.seed * 2 + 1},
          ends_{End(unsigned(s.physical)), End(unsigned(s.physical))} {
        for (unsigned e = 0; e < 2; e++) {
            ends_[e].port = std::make_unique<LanePort>(uint16_t(s.seed + e * 7), unsigned(s.physical));
            ends_[e].wires.assign(s.delay * flit_cycles_, {});
            for (auto& cycles : ends_[e].handed) cycles.assign(HANDED, 0);
        }
    }

    // Until `cycles` link cycles have passed or the milliseconds are over. Sends while `sending`.
    void run(uint64_t cycles, bool sending, uint64_t milliseconds) {
        using clock = std::chrono::steady_clock;
        const auto begin = clock::now();
        const auto until = begin + std::chrono::milliseconds(milliseconds);
        for (uint64_t n = 0; n < cycles; n++) {
            const size_t slot = now_ % ends_[0].wires.size();
            for (unsigned e = 0; e < 2; e++) {
                if (sending) offer(e);
                ends_[e].port->put(ends_[1 - e].wires[slot]);
            }
            for (End& end : ends_) end.port->low();
            for (unsigned e = 0; e < 2; e++) {
                End& end = ends_[e];
                if (end.port->top().tx_flit) plan(end);
                if (end.port->top().sent_payload) watch(end);
                acknowledged(end);
                Words words = end.port->get();
                if (end.aim.pass(words, std::max<unsigned>(1, end.port->top().tx_width), random_)) mark(end);
                end.wires[slot] = damaged(end, words);
            }
            for (End& end : ends_) end.port->high();
            for (unsigned e = 0; e < 2; e++) check(e);
            now_++;
            if ((n & 255) == 255 && clock::now() >= until) break;
        }
        seconds += std::chrono::duration<double>(clock::now() - begin).count();
    }

    void status() {
        auto sum = [&](const char* name) { return uint64_t(ends_[0].port->count(name)) + ends_[1].port->count(name); };
        counts.cycles = now_;
        counts.refused = sum("count_refused");
        counts.malformed = sum("count_malformed");
        counts.corrections = sum("count_corrected");
        counts.replays = sum("count_replay");
        counts.unresolved = sum("count_unresolved");
        counts.spurious = sum("count_spurious");
        counts.retrained = sum("count_retrained");
        counts.downs = sum("count_down");
        counts.width = std::min(ends_[0].port->top().tx_width, ends_[1].port->top().tx_width);
        counts.outstanding = 0;
        for (unsigned e = 0; e < 2; e++) {
            for (unsigned q = 0; q < QUEUES; q++) counts.outstanding += ends_[e].next[q] - ends_[1 - e].expected[q];
        }
    }

    bool up() { return ends_[0].port->top().state == 3 && ends_[1].port->top().state == 3; }

    End& end(unsigned e) { return ends_.at(e); }

    Counts counts{};
    double seconds = 0;
    bool gaps = false;  // whether times without a delivery count, and latencies
    std::array<std::array<uint64_t, LATENCY_BINS>, CLASSES> latency{};  // packets by cycles from handing over to delivery

private:
    void offer(unsigned e) {
        End& end = ends_[e];
        for (unsigned cls = 0; cls < settings_.classes; cls++) {
            for (unsigned kind = 0; kind <= (settings_.responses ? 1u : 0u); kind++) {
                const unsigned q = cls * 2 + kind;
                if (!end.port->takes(q)) continue;
                const auto p = packet(e, cls, kind, end.next[q], unsigned(settings_.packet_bytes));
                end.port->send(uint8_t(cls), p.data(), p.size());
                end.handed[q][end.next[q] % HANDED] = now_;
                end.next[q]++;
                counts.sent++;
            }
        }
    }

    // Decides what happens to the flit whose first word is on the lanes LANE_DELAY cycles from now.
    void plan(End& end) {
        const uint64_t first = now_ + LANE_DELAY;
        const uint64_t width = std::max<uint64_t>(1, end.port->top().tx_width);
        counts.flits++;
        if (random_.unit() < settings_.flit_error_rate) {
            counts.damaged++;
            end.refuse_from = first;
            end.refuse_to = first + plexus::FLIT / (WORD * width);
        }
        if (settings_.burst_rate > 0 && random_.unit() < settings_.burst_rate) {
            counts.bursts++;
            end.burst_from = first;
            end.burst_to = first + flit_cycles_;
            do end.burst_lane = random_.below(unsigned(settings_.physical));
            while (!(settings_.burst_lanes >> end.burst_lane & 1));
            end.burst_first = random_.below(flit_cycles_ * WORD - unsigned(settings_.burst_bytes) + 1);
        }
    }

    Words damaged(End& end, Words words) {
        if (now_ >= end.refuse_from && now_ < end.refuse_to) {
            for (unsigned k = 0; k < 4; k++) {
                words.bytes[random_.below(unsigned(settings_.physical) * WORD)] ^= uint8_t(1 + random_.below(255));
            }
            for (unsigned lane = 0; lane < settings_.physical; lane++) words.bytes[lane * WORD + 3] ^= 0x5a;
        }
        if (now_ >= end.burst_from && now_ < end.burst_to) {
            for (unsigned k = 0; k < WORD; k++) {
                const unsigned at = unsigned(now_ - end.burst_from) * WORD + k;
                if (at >= end.burst_first && at < end.burst_first + settings_.burst_bytes) {
                    words.bytes[end.burst_lane * WORD + k] ^= uint8_t(1 + random_.below(255));
                }
            }
        }
        if (now_ >= settings_.kill_time && &end == ends_.data()) {
            for (unsigned k = 0; k < WORD; k++) words.bytes[settings_.kill_lane * WORD + k] = 0;
        }
        return words;
    }

    void mark(End& end) {
        end.marker_in_flight = end.port->top().in_flight;
        end.marker_number = end.newest;
        end.marker_replaying = end.replaying;
    }

    // Payload flits put on their way: new numbers, numbers sent again, and how long it took until a replay sent it again.
    void watch(End& end) {
        const unsigned number = end.port->top().sent_number;
        const unsigned ahead = (number - end.newest) & (settings_.numbers - 1);
        const uint64_t before = end.last_sent[number];
        end.last_sent[number] = now_;
        if (ahead == 1) {
            end.newest = number;
            end.replaying = false;
            counts.payload_flits++;
            return;
        }
        counts.resent++;
        if (!end.replaying) {
            counts.round_trip_sum += now_ - before;
            counts.round_trips++;
        }
        end.replaying = number != end.newest;
    }

    // How long the newest acknowledged flit has been under way, when that changes.
    void acknowledged(End& end) {
        const unsigned number = (end.newest - end.port->top().in_flight) & (settings_.numbers - 1);
        if (number == end.acknowledged) return;
        end.acknowledged = number;
        if (end.replaying) return;
        counts.ack_sum += now_ - end.last_sent[number];
        counts.acks++;
    }

    // What end `e` has delivered since, beside what its partner sent.
    void check(unsigned e) {
        End& end = ends_[e];
        bool came = false;
        for (auto& taken = end.port->taken; !taken.empty(); taken.pop_front()) {
            const auto& bytes = taken.front().bytes;
            const unsigned cls = taken.front().cls;
            const unsigned kind = plexus::is_response(bytes.data());
            const unsigned q = cls * 2 + kind;
            const uint64_t number = number_of(bytes);
            uint64_t& expected = end.expected[q];
            if (cls >= settings_.classes || bytes != packet(1 - e, cls, kind, number, unsigned(settings_.packet_bytes))) {
                counts.corrupted++;
                continue;
            }
            std::set<uint64_t>& missing = end.missing[q];
            if (number < expected) {
                if (missing.erase(number) == 0) {
                    counts.duplicated++;
                    continue;
                }
                counts.reordered++;
                counts.lost--;
            } else {
                for (; expected < number; expected++) {
                    missing.insert(expected);
                    counts.lost++;
                }
                expected++;
            }
            counts.delivered++;
            counts.payload_bytes += bytes.size() - plexus::PACKET_HEADER;
            counts.by_class[cls]++;
            if (gaps) {
                const uint64_t cycles = now_ - ends_[1 - e].handed[q][number % HANDED];
                latency[cls][std::min<uint64_t>(cycles, LATENCY_BINS - 1)]++;
                counts.latency_max = std::max(counts.latency_max, cycles);
            }
            came = true;
        }
        if (came || !gaps) end.last_delivery = now_;
        counts.longest_gap = std::max(counts.longest_gap, now_ - end.last_delivery);
    }

    Settings settings_;
    unsigned flit_cycles_;
    Random random_;
    uint64_t now_ = 0;
    std::array<End, 2> ends_;
};

}  // namespace

void vl_fatal(const char*, int line, const char* scope, const char* message) {
    throw std::runtime_error(std::string("the model stopped in ") + (scope ? scope : "") + ", line " +
                             std::to_string(line) + ": " + message);
}
void vl_stop(const char* file, int line, const char* scope) { vl_fatal(file, line, scope, "$stop"); }
void vl_finish(const char* file, int line, const char* scope) { vl_fatal(file, line, scope, "$finish"); }

#define PX extern "C" __attribute__((visibility("default")))

PX const char* px_error() { return error.c_str(); }

PX void* px_link_create(const double* rates, const uint64_t* n) {
    try {
        return new Pair({rates[0], rates[1], n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9], n[10], n[11]});
    } catch (const std::exception& e) {
        error = e.what();
        return nullptr;
    }
}

PX void px_link_destroy(void* pair) { delete static_cast<Pair*>(pair); }

PX int px_link_run(void* pair, uint64_t cycles, int sending, uint64_t milliseconds) {
    try {
        static_cast<Pair*>(pair)->run(cycles, sending != 0, milliseconds);
        return 0;
    } catch (const std::exception& e) {
        error = e.what();
        return -1;
    }
}

PX void px_link_gaps(void* pair, int on) { static_cast<Pair*>(pair)->gaps = on != 0; }

PX int px_link_up(void* pair) { return static_cast<Pair*>(pair)->up(); }

PX double px_link_seconds(void* pair) { return static_cast<Pair*>(pair)->seconds; }

PX void px_link_counts(void* pair, uint64_t* out) {
    auto* p = static_cast<Pair*>(pair);
    p->status();
    std::memcpy(out, &p->counts, sizeof p->counts);
}

PX void px_link_latency(void* pair, uint64_t* out) {
    for (const auto& bins : static_cast<Pair*>(pair)->latency) out = std::copy(bins.begin(), bins.end(), out);
}

// Refuse `count` flits of an end from its flit `first` on; see px_link_end for where it is.
PX void px_link_aim(void* pair, uint64_t end, uint64_t first, uint64_t count) {
    static_cast<Pair*>(pair)->end(unsigned(end)).aim.flits_from(first, count);
}

// Damage the next `times` markers of an end on these lanes.
PX void px_link_mark(void* pair, uint64_t end, uint64_t lanes, uint64_t times) {
    static_cast<Pair*>(pair)->end(unsigned(end)).aim.next_markers(lanes, times);
}

PX void px_link_end(void* pair, uint64_t e, uint64_t* out) {
    const End& end = static_cast<Pair*>(pair)->end(unsigned(e));
    const uint64_t values[] = {end.aim.flits,        end.aim.since,     end.aim.markers,      end.aim.refused,
                               end.newest,
                               end.marker_in_flight, end.marker_number, end.marker_replaying};
    std::memcpy(out, values, sizeof values);
}

// A planted fault in both ends, in a build that has them.
PX int px_link_plant(void* pair, uint64_t fault) {
    try {
        for (unsigned e = 0; e < 2; e++) *plexus::pin<SData>(static_cast<Pair*>(pair)->end(e).port->top(), "plant") = SData(fault);
        return 0;
    } catch (const std::exception& e) {
        error = e.what();
        return -1;
    }
}
