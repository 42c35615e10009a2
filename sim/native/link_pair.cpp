// Two ports and the channel between them: saturating traffic, faults by rate, and a check of every packet delivered.
//
// A flit time: what each end sends enters its channel; what leaves the channel, `delay` flit times later, enters the
// partner, damaged or refused as the rates say. Packets carry (sender, class, kind, number) in their header, and bytes
// that follow from it, so that the receiving end knows what must come next.

#include <chrono>
#include <deque>
#include <memory>
#include <set>

#include "port_model.h"

namespace {

thread_local std::string error;

constexpr unsigned CLASSES = 8;
constexpr unsigned QUEUES = 2 * CLASSES;

struct Random {
    uint64_t state;
    uint64_t next() {  // splitmix64
        uint64_t z = (state += 0x9e3779b97f4a7c15ull);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        return z ^ (z >> 31);
    }
    double unit() { return double(next() >> 11) * 0x1.0p-53; }
    unsigned below(unsigned n) { return unsigned(next() % n); }
};

struct Settings {
    double flit_error_rate, burst_rate;
    uint64_t burst_bytes, lanes, packet_bytes, classes, responses, delay, seed;
};

// Results in the order that sim/native/ports.py names.
struct Counts {
    uint64_t flit_times, cycles, sent, delivered, lost, duplicated, reordered, corrupted, payload_bytes;
    uint64_t payload_flits, resent, refused, bursts, corrections, replays, round_trip_sum, round_trips, outstanding;
    uint64_t unresolved, spurious, retrained, downs, longest_gap, by_class[CLASSES];
};

unsigned opcode(unsigned kind) { return kind ? 5 : 0; }  // READ_RESPONSE, WRITE

std::vector<uint8_t> packet(unsigned end, unsigned cls, unsigned kind, uint64_t number, unsigned bytes) {
    std::vector<uint8_t> p(plexus::PACKET_HEADER + bytes, 0);
    p[0] = uint8_t(opcode(kind));
    p[1] = uint8_t(bytes);
    p[2] = uint8_t((bytes >> 8 & 3) | (number & 63) << 2);
    p[3] = uint8_t((number >> 6 & 15) | end << 4);
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

using Flit = std::array<uint8_t, plexus::FLIT>;
struct Wire {
    Flit flit;
    bool refused;
};

// One end: its port, what it has sent, and what its partner must deliver next.
struct End {
    std::unique_ptr<plexus::PortModel> port;
    std::deque<Wire> channel;  // what is under way to the partner
    std::array<uint64_t, QUEUES> next{};
    std::array<uint64_t, QUEUES> expected{};  // of the partner's packets
    std::array<std::set<uint64_t>, QUEUES> missing;  // numbers below it that have not come
    std::deque<std::pair<unsigned, uint64_t>> first_sent;  // number, flit time
    unsigned newest = 1023;
    bool any = false;
};

class Pair {
public:
    Pair(const Settings& s) : settings_(s), random_{s.seed * 2 + 1} {
        for (unsigned e = 0; e < 2; e++) {
            ends_[e].port = std::make_unique<plexus::PortModel>(uint16_t(s.seed + e * 7));
            ends_[e].channel.assign(s.delay, {Flit{}, true});
        }
    }

    // Until `times` flit times have passed or the milliseconds are over. Sends while `sending`.
    void run(uint64_t times, bool sending, uint64_t milliseconds) {
        using clock = std::chrono::steady_clock;
        const auto begin = clock::now();
        const auto until = begin + std::chrono::milliseconds(milliseconds);
        for (uint64_t n = 0; n < times; n++) {
            for (End& end : ends_) {
                if (sending) offer(end);
            }
            std::array<Flit, 2> out;
            for (unsigned e = 0; e < 2; e++) {
                Wire in = ends_[1 - e].channel.front();
                ends_[1 - e].channel.pop_front();
                ends_[e].port->step(in.refused ? nullptr : in.flit.data(), out[e].data());
            }
            for (unsigned e = 0; e < 2; e++) {
                watch(ends_[e], out[e]);
                ends_[e].channel.push_back(damaged(out[e]));
                check(e);
            }
            counts.flit_times++;
            if ((n & 63) == 63 && clock::now() >= until) break;
        }
        seconds += std::chrono::duration<double>(clock::now() - begin).count();
    }

    // Packets sent and not delivered yet.
    uint64_t outstanding() const {
        uint64_t n = 0;
        for (unsigned e = 0; e < 2; e++) {
            for (unsigned q = 0; q < QUEUES; q++) n += ends_[e].next[q] - ends_[1 - e].expected[q];
        }
        return n;
    }

    void status() {
        auto sum = [&](const char* name) {
            uint64_t total = 0;
            for (End& end : ends_) total += *plexus::pin<IData>(end.port->top(), name);
            return total;
        };
        counts.cycles = ends_[0].port->cycles;
        counts.corrections = sum("count_corrected");
        counts.replays = sum("count_replay");
        counts.unresolved = sum("count_unresolved");
        counts.spurious = sum("count_spurious");
        counts.retrained = sum("count_retrained");
        counts.downs = sum("count_down");
        counts.outstanding = outstanding();
    }

    bool up() {
        return ends_[0].port->top().state == 3 && ends_[1].port->top().state == 3;
    }

    Counts counts{};
    bool gaps = false;  // whether times without a delivery count
    double seconds = 0;

private:
    void offer(End& end) {
        const unsigned me = unsigned(&end - ends_.data());
        for (unsigned cls = 0; cls < settings_.classes; cls++) {
            for (unsigned kind = 0; kind <= (settings_.responses ? 1u : 0u); kind++) {
                const unsigned q = cls * 2 + kind;
                const auto p = packet(me, cls, kind, end.next[q], unsigned(settings_.packet_bytes));
                if (end.port->send(uint8_t(cls), p.data(), p.size())) {
                    end.next[q]++;
                    counts.sent++;
                }
            }
        }
    }

    // Payload flits on the wire: new numbers, numbers sent again, and how long it took until a replay began.
    void watch(End& end, const Flit& flit) {
        if (flit[236] >> 6 != 1) return;
        const unsigned number = (flit[236] & 3u) << 8 | flit[237];
        const unsigned ahead = (number - end.newest) & 1023;
        if (!end.any || ahead == 1) {
            end.any = true;
            end.newest = number;
            counts.payload_flits++;
            end.first_sent.emplace_back(number, counts.flit_times);
            if (end.first_sent.size() > 512) end.first_sent.pop_front();
            end_replaying(end) = false;
            return;
        }
        counts.resent++;
        if (!end_replaying(end)) {
            for (auto it = end.first_sent.rbegin(); it != end.first_sent.rend(); ++it) {
                if (it->first == number) {
                    counts.round_trip_sum += counts.flit_times - it->second;
                    counts.round_trips++;
                    break;
                }
            }
        }
        end_replaying(end) = true;
    }

    bool& end_replaying(const End& end) { return replaying_[size_t(&end - ends_.data())]; }

    Wire damaged(const Flit& flit) {
        Wire wire{flit, random_.unit() < settings_.flit_error_rate};
        if (wire.refused) counts.refused++;
        if (settings_.burst_rate > 0 && random_.unit() < settings_.burst_rate) {
            counts.bursts++;
            const unsigned lanes = unsigned(settings_.lanes);
            const unsigned row = random_.below(plexus::FLIT / lanes - unsigned(settings_.burst_bytes) + 1);
            const unsigned lane = random_.below(lanes);
            for (unsigned k = 0; k < settings_.burst_bytes; k++) {
                wire.flit[(row + k) * lanes + lane] ^= uint8_t(1 + random_.below(255));
            }
        }
        return wire;
    }

    // What end `e` has delivered since, beside what its partner sent.
    void check(unsigned e) {
        bool came = false;
        for (auto& taken = ends_[e].port->taken; !taken.empty(); taken.pop_front()) {
            const auto& bytes = taken.front().bytes;
            const unsigned cls = taken.front().cls;
            const unsigned kind = plexus::is_response(bytes.data());
            const unsigned q = cls * 2 + kind;
            const uint64_t number = number_of(bytes);
            uint64_t& expected = ends_[e].expected[q];
            if (cls >= settings_.classes || bytes != packet(1 - e, cls, kind, number, unsigned(settings_.packet_bytes))) {
                counts.corrupted++;
                continue;
            }
            std::set<uint64_t>& missing = ends_[e].missing[q];
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
            came = true;
            counts.payload_bytes += bytes.size() - plexus::PACKET_HEADER;
            counts.by_class[cls]++;
        }
        uint64_t& last = last_delivery_[e];
        if (came || !gaps) last = counts.flit_times;
        counts.longest_gap = std::max(counts.longest_gap, counts.flit_times - last);
    }

    Settings settings_;
    Random random_;
    std::array<End, 2> ends_;
    std::array<bool, 2> replaying_{};
    std::array<uint64_t, 2> last_delivery_{};
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

PX void* px_link_create(const double* rates, const uint64_t* numbers) {
    try {
        return new Pair({rates[0], rates[1], numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5],
                         numbers[6]});
    } catch (const std::exception& e) {
        error = e.what();
        return nullptr;
    }
}

PX void px_link_destroy(void* pair) { delete static_cast<Pair*>(pair); }

PX int px_link_run(void* pair, uint64_t times, int sending, uint64_t milliseconds) {
    try {
        static_cast<Pair*>(pair)->run(times, sending != 0, milliseconds);
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
