// A Verilated port and an endpoint (endpoint.h) at the two ends of a link: random traffic both ways, every packet checked.

#include <chrono>

#include "endpoint.h"
#include "fatal.h"
#include "port_model.h"
#include "units.h"

namespace {

using namespace plexus;

thread_local std::string error;

constexpr unsigned QUEUES = 2 * wire::CLASSES;

// In the order in which sim/native/partner.py gives them.
struct Settings {
    double error_rate, burst_rate, repeat_rate, slots_a_flit;
    LinkNumbers numbers;
    uint64_t delay, seed;
};

struct Counts {
    uint64_t sent[2], delivered[2], wrong[2], outstanding[2], flits, resent, refused, replays, spurious, corrected;
    uint64_t port_refused, port_replays, port_spurious, port_corrected, overruns, downs, retrains, unresolved, odd;
};

using Packets = std::array<std::deque<std::vector<uint8_t>>, QUEUES>;

class FlitPort : public PortModel {
public:
    explicit FlitPort(uint16_t session)
        : PortModel(session),
          beat_(find_pin(top(), "tx_data").width / 8),
          tx_(static_cast<const uint8_t*>(wide_pin(top(), "tx_data", beat_))),
          rx_(static_cast<uint8_t*>(wide_pin(top(), "rx_data", beat_))) {}

    // A flit's cycles. rx: null for silence. True: tx holds a whole flit.
    bool step(const uint8_t* rx, bool refuse, uint8_t* tx) {
        const unsigned beats = wire::FLIT_BYTES / beat_;
        bool whole = false;
        for (unsigned n = 0; n < beats; n++) {
            top().rx_valid = rx != nullptr;
            top().rx_first = n == 0;
            top().rx_last = n == beats - 1;
            top().rx_refuse = refuse;
            if (rx) std::memcpy(rx_, rx + n * beat_, beat_);
            low();
            if (top().tx_valid) {
                if (top().tx_first) at_ = 0;
                std::memcpy(flit_ + at_ * beat_, tx_, beat_);
                if (++at_ == beats) {
                    std::memcpy(tx, flit_, sizeof flit_);
                    whole = true;
                    at_ = 0;
                }
            }
            high();
        }
        return whole;
    }
    uint64_t count(const char* name) { return *pin<IData>(top(), name); }

private:
    unsigned beat_;
    const uint8_t* tx_;
    uint8_t* rx_;
    unsigned at_ = 0;
    uint8_t flit_[wire::FLIT_BYTES];
};

struct Wire {
    bool valid = false, refuse = false;
    uint8_t bytes[wire::FLIT_BYTES];
};

class Partners : FlitUser {
public:
    explicit Partners(const Settings& s)
        : settings_(s),
          random_{s.seed},
          port_(uint16_t(s.seed * 3)),
          end_(s.numbers, uint16_t(s.seed * 5 + 9), *this, s.slots_a_flit),
          to_port_(s.delay + 1),
          to_end_(s.delay + 1) {}

    void run(uint64_t flits, bool sending) {
        sending_ = sending;
        for (uint64_t n = 0; n < flits; n++, now_++) {
            if (sending) offer();
            const size_t put = now_ % to_port_.size(), get = (now_ + 1) % to_port_.size();
            const uint8_t* sent = end_.begin();
            on_wire(to_port_, put, sent);
            const Wire& in = to_port_[get];
            Wire out;
            out.valid = port_.step(in.valid ? in.bytes : nullptr, in.refuse, out.bytes);
            on_wire(to_end_, put, out.valid ? out.bytes : nullptr);
            Wire& heard = to_end_[get];
            if (heard.valid) {
                std::memcpy(out.bytes, heard.bytes, sizeof out.bytes);
                end_.hear(out.bytes, heard.refuse);
            }
            collect();
        }
    }

    bool up() { return end_.link.up() && port_.top().state == wire::LinkState_UP; }
    void restart() { end_.restart = true; }

    Counts counts() {
        Counts c = counts_;
        const auto& causes = end_.link.causes;
        c.flits = end_.payload_flits;
        c.resent = end_.resent;
        c.refused = causes[wire::LinkCause_REFUSED];
        c.replays = causes[wire::LinkCause_REPLAY];
        c.spurious = causes[wire::LinkCause_SPURIOUS];
        c.corrected = causes[wire::LinkCause_CORRECTED];
        c.port_refused = port_.count("count_refused");
        c.port_replays = port_.count("count_replay");
        c.port_spurious = port_.count("count_spurious");
        c.port_corrected = port_.count("count_corrected");
        c.overruns = causes[wire::LinkCause_CREDIT_OVERRUN] + port_.count("count_credit_overrun");
        c.downs = causes[wire::LinkCause_DOWN] + port_.count("count_down");
        c.retrains = causes[wire::LinkCause_RETRAINED] + port_.count("count_retrained");
        c.unresolved = causes[wire::LinkCause_UNRESOLVED] + port_.count("count_unresolved");
        for (unsigned cause : {wire::LinkCause_MALFORMED, wire::LinkCause_BAD_ACK, wire::LinkCause_BAD_CREDIT}) {
            c.odd += causes[cause];
        }
        for (const char* name : {"malformed", "bad_ack", "bad_credit", "bad_unit", "bad_packet"}) {
            c.odd += port_.count((std::string("count_") + name).c_str());
        }
        for (unsigned way = 0; way < 2; way++) {
            for (const auto& queue : expected_[way]) c.outstanding[way] += queue.size();
        }
        return c;
    }

private:
    void on_wire(std::vector<Wire>& wires, size_t at, const uint8_t* flit) {
        Wire& w = wires[at];
        const Wire before = wires[(at + wires.size() - 1) % wires.size()];
        w.valid = flit != nullptr;
        w.refuse = false;
        if (!flit) return;
        std::memcpy(w.bytes, flit, sizeof w.bytes);
        if (random_.unit() < settings_.repeat_rate && before.valid) w = before;
        if (random_.unit() < settings_.error_rate) {
            for (unsigned k = 0; k < 8; k++) w.bytes[random_.below(wire::FLIT_BYTES)] ^= uint8_t(1 + random_.below(255));
            w.refuse = true;
        } else if (random_.unit() < settings_.burst_rate) {
            const unsigned at_byte = random_.below(wire::FLIT_BYTES - 2);
            for (unsigned k = 0; k < 1 + random_.below(3); k++) w.bytes[at_byte + k] ^= uint8_t(1 + random_.below(255));
        }
    }

    // Packets of every size for the port.
    void offer() {
        const unsigned cls = random_.below(settings_.numbers.classes), kind = random_.below(2);
        if (!port_.takes(cls * 2 + kind)) return;
        const unsigned length = random_.below(4) ? random_.below(65) : random_.below(513);
        std::vector<uint8_t> p(wire::PACKET_HEADER_BYTES + length);
        const wire::Word header =
            wire::PACKET_HEADER_opcode.with(kind ? wire::PacketOpcode_READ_RESPONSE : wire::PacketOpcode_WRITE) |
            wire::PACKET_HEADER_length_bytes.with(length) | wire::PACKET_HEADER_source.with(1 + random_.below(4095)) |
            wire::PACKET_HEADER_address.with(random_.next() >> 2);
        std::memcpy(p.data(), &header, sizeof header);
        for (unsigned i = 0; i < length; i++) p[wire::PACKET_HEADER_BYTES + i] = uint8_t(random_.next());
        if (!port_.send(uint8_t(cls), p.data(), p.size())) return;
        expected_[1][cls * 2 + kind].push_back(std::move(p));
        counts_.sent[1]++;
    }

    void collect() {
        for (; !port_.taken.empty(); port_.taken.pop_front()) {
            const Packet& p = port_.taken.front();
            arrived(0, p.cls * 2u + is_response(p.bytes.data()), p.bytes);
        }
    }

    void arrived(unsigned way, unsigned queue, const std::vector<uint8_t>& packet) {
        auto& waiting = expected_[way][queue];
        counts_.delivered[way]++;
        if (!waiting.empty() && waiting.front() == packet) waiting.pop_front();
        else counts_.wrong[way]++;
    }

    bool next(const LinkEnd& link, uint8_t* payload, uint64_t* name) override {
        if (index_ == unit_.flits) {
            if (!sending_ || random_.below(16) == 0) return false;
            Unit u{random_.below(4096), random_.below(4096), random_.below(link.numbers().classes), random_.below(2),
                   1 + random_.below(4), number_, 0};
            if (link.credits(u.cls, u.kind) < u.flits) return false;
            unit_ = u;
            number_++;
            index_ = 0;
            queue_unit();
        }
        unit_flit(unit_, settings_.seed, index_++, payload);
        *name = unit_.number;
        return true;
    }

    // What the port must deliver of the unit.
    void queue_unit() {
        std::vector<uint8_t> row(ROW_BYTES * unit_.flits);
        uint8_t flit[wire::FLIT_PAYLOAD_BYTES];
        for (unsigned k = 0; k < unit_.flits; k++) {
            unit_flit(unit_, settings_.seed, k, flit);
            std::memcpy(row.data() + k * ROW_BYTES, flit + wire::FLIT_HEADER_BYTES, ROW_BYTES);
        }
        std::vector<std::vector<uint8_t>> packets;
        packets_of(row, packets);
        for (auto& p : packets) expected_[0][unit_.cls * 2 + unit_.kind].push_back(p);
        counts_.sent[0] += packets.size();
    }

    void sent(uint64_t, bool) override {}

    void accepted(const uint8_t* flit) override {
        const uint32_t header = wire::header_of(flit);
        const unsigned queue =
            unsigned(wire::FLIT_HEADER_class_.of(header) * 2 + wire::FLIT_HEADER_kind.of(header));
        std::vector<uint8_t>& row = rows_[queue];
        if (wire::FLIT_HEADER_head.of(header)) row.clear();
        row.insert(row.end(), flit + wire::FLIT_HEADER_BYTES, flit + wire::FLIT_PAYLOAD_BYTES);
        if (!wire::FLIT_HEADER_tail.of(header)) return;
        std::vector<std::vector<uint8_t>> packets;
        if (!packets_of(row, packets)) counts_.odd++;
        for (const auto& p : packets) arrived(1, queue, p);
    }

    // A new session: what was expected before it cannot be told any more.
    void session(const std::vector<uint64_t>&) override {
        index_ = unit_.flits = 0;
        for (auto& row : rows_) row.clear();
    }

    Settings settings_;
    Random random_;
    FlitPort port_;
    Endpoint end_;
    std::vector<Wire> to_port_, to_end_;
    std::array<Packets, 2> expected_;  // 0 from the endpoint, 1 from the port
    std::array<std::vector<uint8_t>, QUEUES> rows_;
    Unit unit_{};
    unsigned index_ = 0;
    uint64_t number_ = 1, now_ = 0;
    bool sending_ = false;
    Counts counts_{};
};

}  // namespace

#define PX extern "C" __attribute__((visibility("default")))

PX const char* px_error() { return error.c_str(); }

PX void* px_partner_create(const double* rates, const uint64_t* n) {
    try {
        const LinkNumbers numbers{unsigned(n[0]), unsigned(n[1]), unsigned(n[2]),
                                  unsigned(n[3]), unsigned(n[4]), unsigned(n[5])};
        return new Partners({rates[0], rates[1], rates[2], rates[3], numbers, n[6], n[7]});
    } catch (const std::exception& e) {
        error = e.what();
        return nullptr;
    }
}

PX void px_partner_destroy(void* p) { delete static_cast<Partners*>(p); }

PX int px_partner_run(void* p, uint64_t flits, int sending) {
    try {
        static_cast<Partners*>(p)->run(flits, sending != 0);
        return 0;
    } catch (const std::exception& e) {
        error = e.what();
        return -1;
    }
}

PX int px_partner_up(void* p) { return static_cast<Partners*>(p)->up(); }
PX void px_partner_restart(void* p) { static_cast<Partners*>(p)->restart(); }

PX void px_partner_counts(void* p, uint64_t* out) {
    const Counts counts = static_cast<Partners*>(p)->counts();
    std::memcpy(out, &counts, sizeof counts);
}

// Flits a second that one endpoint sends and hears, each to itself: `flits` of each.
PX double px_endpoint_rate(uint64_t flits) {
    uint8_t flit[wire::FLIT_BYTES];
    const Unit u{1, 2, 3, 0, 1, 4, 5};
    const FlitCodec& codec = flit_codec();
    const auto begin = std::chrono::steady_clock::now();
    uint64_t bad = 0;
    for (uint64_t n = 0; n < flits; n++) {
        unit_flit(u, n, 0, flit);
        codec.encode(flit);
        bad += codec.decode(flit) != 0;
        bad += !same_flit(u, n, 0, flit);
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return bad ? 0 : double(flits) / seconds;
}
