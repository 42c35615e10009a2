// A Verilated switch (rtl/switch/device.py) with an endpoint at every port, traffic between them, and a check of
// every flit. What sim/native/switch.py calls.

#include <chrono>
#include <memory>

#include "endpoint.h"
#include "fatal.h"
#include "ledger.h"
#include "model.h"
#include "pins.h"
#include "traffic.h"

namespace {

using namespace plexus;

thread_local std::string error;

struct Settings {
    LinkNumbers numbers;
    unsigned flit_cycles, beat_bytes, delay;
    double flit_error_rate;
    TrafficSettings traffic;
    std::vector<unsigned> routes, partitions;
};

// A bit by port, however Verilator keeps the pin.
class Bits {
public:
    Bits(Vtop& top, const char* name, unsigned ports) : at_(static_cast<uint8_t*>(find_pin(top, name).at)) {
        if (!at_ || find_pin(top, name).width != ports) throw std::runtime_error(std::string("the switch has other pins than ") + name);
    }
    bool operator[](unsigned n) const { return at_[n >> 3] >> (n & 7) & 1; }
    void set(unsigned n, bool value) {
        const uint8_t bit = uint8_t(1u << (n & 7));
        at_[n >> 3] = uint8_t((at_[n >> 3] & ~bit) | (value ? bit : 0));
    }

private:
    uint8_t* at_;
};

struct Totals {
    uint64_t cycles, offered_flits, blocked_flits, waiting_flits, payload_flits, resent, damaged;
    uint64_t refused, replays, spurious, corrected, downs, retrains, unresolved, odd;
};

// A flit on a wire; `begins`: the first one of a unit, for the first time.
struct OnWire {
    bool valid = false, begins = false, refuse = false;
    uint64_t stamp = 0, cycle = 0;  // of its first beat
    uint8_t bytes[wire::FLIT_BYTES];
};

class Source : public FlitUser {
public:
    Source(unsigned port, const Settings& s, const Labels& labels, Ledger& ledger)
        : port_(port),
          settings_(s.traffic),
          labels_(labels),
          ledger_(ledger),
          random_{mixed(s.traffic.seed * 1000 + port)},
          queues_(s.traffic),
          end(s.numbers, uint16_t(s.traffic.seed * 77 + port * 131), *this) {
        const bool all = settings_.class_inputs == ClassInputs::SAME ||
                         (settings_.class_inputs == ClassInputs::MIXED && labels.label(port) * 2 < settings_.ports);
        for (unsigned c = 0; c < settings_.classes; c++) {
            if (all || labels.label(port) % settings_.classes == c) classes_.push_back(c);
        }
    }

    // A flit time begins: units arrive.
    void arrive() {
        if (!labels_.sends(port_)) return;
        if (settings_.load >= 1) {
            for (unsigned c : classes_) {
                for (unsigned kind = 0; kind < 2; kind++) {
                    const double share = kind ? settings_.responses : 1 - settings_.responses;
                    while (share > 0 && queues_.waiting(c, kind) < 2) make(c, kind);
                }
            }
            return;
        }
        const double size = 0.5 * (settings_.flits_min + settings_.flits_max);
        if (random_.unit() >= settings_.load / size) return;
        if (queues_.flits >= settings_.backlog) {
            blocked += uint64_t(size);
            return;
        }
        make(classes_[random_.below(unsigned(classes_.size()))], random_.unit() < settings_.responses);
    }

    void make(unsigned cls, unsigned kind) {
        Unit u{};
        u.source = port_;
        const auto& there = settings_.endpoints[labels_.destination(port_, random_)];
        u.destination = there[random_.below(unsigned(there.size()))];
        u.cls = cls;
        u.kind = kind;
        u.flits = settings_.flits_min + random_.below(settings_.flits_max - settings_.flits_min + 1);
        u.stamp = stamp_++;
        ledger_.number(u);
        queues_.push(u);
        offered += u.flits;
    }

    bool next(const LinkEnd& link, uint8_t* payload, uint64_t* name) override {
        if (index_ == unit_.flits) {
            if (!queues_.flits || !queues_.pop(link, unit_)) return false;
            index_ = 0;
        }
        unit_flit(unit_, settings_.seed, index_, payload);
        *name = unit_.stamp * 4 + index_++;
        return true;
    }
    void sent(uint64_t name, bool again) override {
        begins = name % 4 == 0 && !again;
        begun = name / 4;
    }
    void accepted(const uint8_t* payload) override { ledger_.accepted(port_, payload, heard_cycle); }
    void session(const std::vector<uint64_t>&) override {
        unit_.flits = index_ = 0;
        ledger_.close(port_);
        if (was_up) ledger_.touch(port_);
    }
    // Bits of the classes that it sends.
    uint64_t classes() const {
        uint64_t bits = 0;
        for (unsigned c : classes_) bits |= uint64_t(labels_.sends(port_)) << c;
        return bits;
    }
    unsigned waiting() const { return queues_.flits + unit_.flits - index_; }

private:
    unsigned port_;
    const TrafficSettings& settings_;
    const Labels& labels_;
    Ledger& ledger_;
    Random random_;
    SourceQueues queues_;
    std::vector<unsigned> classes_;
    Unit unit_{};
    unsigned index_ = 0;
    uint64_t stamp_ = 0;

public:
    Endpoint end;
    bool begins = false, was_up = false;
    uint64_t begun = 0, heard_cycle = 0, offered = 0, blocked = 0;
};

struct Port {
    std::unique_ptr<Source> source;
    uint64_t begin = 0, began = 0;  // cycles of the next flit towards the switch and of the present one
    std::vector<OnWire> out, in;  // rings of `delay` flits, to the switch and from it
    size_t out_at = 0, in_at = 0;
    const OnWire* sending = nullptr;
    unsigned step = 0;        // beats of it that are over
    unsigned received = 0;    // beats of partly
    OnWire partly;
};

class SwitchRun {
public:
    explicit SwitchRun(const Settings& s)
        : settings_(s),
          labels_(settings_.traffic),
          ledger(settings_.traffic.ports, settings_.traffic.seed, settings_.routes, settings_.partitions),
          random_{settings_.traffic.seed * 3 + 1},
          rx_valid_(bits("rx_valid")),
          rx_first_(bits("rx_first")),
          rx_last_(bits("rx_last")),
          rx_refuse_(bits("rx_refuse")),
          tx_valid_(bits("tx_valid")),
          tx_first_(bits("tx_first")),
          tx_last_(bits("tx_last")),
          restart_(bits("restart")),
          disabled_(bits("disabled")),
          rx_(static_cast<uint8_t*>(wide_pin(model_.top(), "rx_data", s.traffic.ports * s.beat_bytes))),
          tx_(static_cast<const uint8_t*>(wide_pin(model_.top(), "tx_data", s.traffic.ports * s.beat_bytes))),
          state_(static_cast<const uint8_t*>(find_pin(model_.top(), "state").at)),
          beats_(wire::FLIT_BYTES / s.beat_bytes),
          beat_cycles_(s.flit_cycles / beats_),
          ports_(s.traffic.ports) {
        ledger.flit_cycles = s.flit_cycles;
        for (unsigned p = 0; p < ports_.size(); p++) {
            Port& port = ports_[p];
            port.source = std::make_unique<Source>(p, settings_, labels_, ledger);
            port.begin = random_.below(s.flit_cycles);
            port.out.resize(s.delay + 1);
            port.in.resize(s.delay + 1);
        }
        model_.top().session_init = uint16_t(s.traffic.seed * 1009 + 5);
    }

    void run(uint64_t cycles, bool sending, uint64_t milliseconds) {
        using clock = std::chrono::steady_clock;
        const auto begin = clock::now();
        const auto until = begin + std::chrono::milliseconds(milliseconds);
        sending_ = sending;
        for (uint64_t n = 0; n < cycles; n++) {
            cycle();
            if ((n & 255) == 255 && clock::now() >= until) break;
        }
        seconds += std::chrono::duration<double>(clock::now() - begin).count();
    }

    // By port, bits of the classes that its source sends.
    void classes(uint64_t* masks) const {
        for (const Port& port : ports_) *masks++ = port.source->classes();
    }
    // Flits that wait at each source, those sent and not yet acknowledged too.
    void waiting(uint64_t* flits) const {
        for (const Port& port : ports_) *flits++ = port.source->waiting() + port.source->end.link.in_flight();
    }
    // Every link is up at both ends; ports that are taken out do not count.
    bool up() {
        for (unsigned p = 0; p < ports_.size(); p++) {
            if (disabled_[p]) continue;
            if (!ports_[p].source->end.link.up() || state(p) != wire::LinkState_UP) return false;
        }
        for (Port& port : ports_) port.source->was_up = true;
        return true;
    }
    unsigned state(unsigned p) const { return state_[p / 2] >> 4 * (p % 2) & 15; }

    void write(unsigned address, uint64_t value) {
        model_.top().address = SData(address);
        model_.top().value = value;
        model_.top().write = 1;
        cycle();
        model_.top().write = 0;
        cycle();
    }
    uint64_t read(unsigned address) {
        model_.top().address = SData(address);
        for (unsigned n = 0; n < 4; n++) cycle();
        return model_.top().read_value;
    }
    void disable(unsigned p, bool on) {
        ledger.touch(p);
        disabled_.set(p, on);
    }
    void restart(unsigned p, bool endpoint) {
        ledger.touch(p);
        if (endpoint) {
            ports_[p].source->end.restart = true;
        } else {
            restart_.set(p, true);
            cycle();
            restart_.set(p, false);
        }
    }

    Totals totals() {
        Totals t{};
        t.cycles = now_;
        t.damaged = damaged_;
        for (Port& port : ports_) {
            Source& s = *port.source;
            const auto& causes = s.end.link.causes;
            t.offered_flits += s.offered;
            t.blocked_flits += s.blocked;
            t.waiting_flits += s.waiting() + s.end.link.in_flight();
            t.payload_flits += s.end.payload_flits;
            t.resent += s.end.resent;
            t.refused += causes[wire::LinkCause_REFUSED];
            t.replays += causes[wire::LinkCause_REPLAY];
            t.spurious += causes[wire::LinkCause_SPURIOUS];
            t.corrected += causes[wire::LinkCause_CORRECTED];
            t.downs += causes[wire::LinkCause_DOWN];
            t.retrains += causes[wire::LinkCause_RETRAINED];
            t.unresolved += causes[wire::LinkCause_UNRESOLVED];
            for (unsigned cause : {wire::LinkCause_MALFORMED, wire::LinkCause_BAD_ACK, wire::LinkCause_BAD_CREDIT,
                                   wire::LinkCause_CREDIT_OVERRUN}) {
                t.odd += causes[cause];
            }
        }
        ledger.settle();
        return t;
    }

    double seconds = 0;

private:
    Bits bits(const char* name) { return Bits(model_.top(), name, settings_.traffic.ports); }

    void cycle() {
        if (sending_ && settings_.traffic.pattern == Pattern::PROBE) probe();
        for (unsigned p = 0; p < ports_.size(); p++) drive(p);
        model_.low();
        for (unsigned p = 0; p < ports_.size(); p++) {
            if (tx_valid_[p]) sample(p);
        }
        model_.high();
        now_++;
    }

    // One unit in the whole switch at a time, at any time.
    void probe() {
        if (ledger.counts.units_sent != ledger.counts.units_delivered) {
            probe_at_ = now_ + 20 + random_.below(40);
        } else if (now_ == probe_at_ || probe_at_ == 0) {
            ports_[random_.below(unsigned(ports_.size()))].source->make(0, 0);
            probe_at_ = ~0ull;
        }
    }

    // Port p's wire towards the switch in this cycle.
    void drive(unsigned p) {
        Port& port = ports_[p];
        if (now_ == port.begin) {
            begin(port);
            const OnWire* first = port.sending;
            if (first && first->begins) ledger.begun(p, first->stamp, now_);
        }
        const bool beat = port.sending && (now_ - port.began) % beat_cycles_ == 0 && port.step < beats_;
        rx_valid_.set(p, beat);
        if (!beat) return;
        rx_first_.set(p, port.step == 0);
        rx_last_.set(p, port.step == beats_ - 1);
        rx_refuse_.set(p, port.sending->refuse);
        std::memcpy(rx_ + p * settings_.beat_bytes, port.sending->bytes + port.step * settings_.beat_bytes, settings_.beat_bytes);
        port.step++;
    }

    void begin(Port& port) {
        Source& source = *port.source;
        if (sending_ && settings_.traffic.pattern != Pattern::PROBE) source.arrive();
        source.begins = false;
        const uint8_t* flit = source.end.begin();
        OnWire& out = port.out[port.out_at];
        out.valid = flit != nullptr;
        out.begins = source.begins;
        out.stamp = source.begun;
        out.refuse = false;
        if (flit) {
            std::memcpy(out.bytes, flit, sizeof out.bytes);
            spoil(out);
        }
        port.out_at = (port.out_at + 1) % port.out.size();
        const OnWire& due = port.out[port.out_at];
        port.sending = due.valid ? &due : nullptr;
        port.step = 0;
        port.began = now_;
        // A probe comes in any cycle of a flit time: now and then a wire is idle for a cycle.
        const bool slips = settings_.traffic.pattern == Pattern::PROBE && random_.below(8) == 0;
        port.begin += settings_.flit_cycles + slips;
    }

    void spoil(OnWire& flit) {
        if (settings_.flit_error_rate <= 0 || random_.unit() >= settings_.flit_error_rate) return;
        damaged_++;
        flit.refuse = true;
        for (unsigned k = 0; k < 8; k++) flit.bytes[random_.below(wire::FLIT_BYTES)] ^= uint8_t(1 + random_.below(255));
    }

    // Port p shows a beat.
    void sample(unsigned p) {
        Port& port = ports_[p];
        if (tx_first_[p]) {
            port.received = 0;
            port.partly.cycle = now_;
        }
        if (port.received < beats_) {
            std::memcpy(port.partly.bytes + port.received * settings_.beat_bytes, tx_ + p * settings_.beat_bytes, settings_.beat_bytes);
        }
        port.received++;
        if (!tx_last_[p]) return;
        if (port.received != beats_) throw std::runtime_error("port " + std::to_string(p) + " sends a flit of " + std::to_string(port.received) + " beats");
        OnWire& in = port.in[port.in_at];
        in = port.partly;
        in.refuse = false;
        in.valid = true;
        spoil(in);
        port.in_at = (port.in_at + 1) % port.in.size();
        OnWire& due = port.in[port.in_at];
        if (!due.valid) return;
        port.source->heard_cycle = due.cycle;
        port.source->end.hear(due.bytes, due.refuse);
    }

    Model model_;
    Settings settings_;
    Labels labels_;

public:
    Ledger ledger;

private:
    Random random_;
    Bits rx_valid_, rx_first_, rx_last_, rx_refuse_, tx_valid_, tx_first_, tx_last_, restart_, disabled_;
    uint8_t* rx_;
    const uint8_t* tx_;
    const uint8_t* state_;
    unsigned beats_, beat_cycles_;
    std::vector<Port> ports_;
    uint64_t now_ = 0, probe_at_ = 0, damaged_ = 0;
    bool sending_ = false;
};

// Settings from the two arrays of sim/native/switch.py: rates, and numbers followed by the weights, then by the route
// of each endpoint and the partition of each port.
Settings settings_of(const double* rates, const uint64_t* n) {
    Settings s{};
    s.numbers = {unsigned(n[0]), unsigned(n[1]), unsigned(n[2]), unsigned(n[3]), unsigned(n[4]), unsigned(n[5])};
    s.flit_cycles = unsigned(n[6]);
    s.beat_bytes = unsigned(n[7]);
    s.delay = unsigned(n[8]);
    s.flit_error_rate = rates[0];
    TrafficSettings& t = s.traffic;
    t.load = rates[1];
    t.responses = rates[2];
    t.pattern = Pattern(n[9]);
    t.class_inputs = ClassInputs(n[10]);
    unsigned* const fields[] = {&t.ports, &t.senders, &t.classes, &t.flits_min, &t.flits_max,
                                &t.backlog, &t.strict_class, &t.strict_cap, &t.silent};
    n += 11;
    for (unsigned* field : fields) *field = unsigned(*n++);
    t.seed = *n++;
    for (unsigned& weight : t.weights) weight = unsigned(*n++);
    const uint64_t endpoints = *n++;
    s.routes.assign(n, n + endpoints);
    s.partitions.assign(n + endpoints, n + endpoints + t.ports);
    t.endpoints.resize(t.ports);
    for (unsigned e = 0; e < endpoints; e++) t.endpoints[s.routes[e]].push_back(e);
    return s;
}

template <typename F>
int guarded(F f) {
    try {
        f();
        return 0;
    } catch (const std::exception& e) {
        error = e.what();
        return -1;
    }
}

}  // namespace

#define PX extern "C" __attribute__((visibility("default")))
using Run = SwitchRun;

PX const char* px_error() { return error.c_str(); }

PX void* px_switch_create(const double* rates, const uint64_t* numbers) {
    Run* made = nullptr;
    guarded([&] { made = new Run(settings_of(rates, numbers)); });
    return made;
}
PX void px_switch_destroy(void* run) { delete static_cast<Run*>(run); }
PX int px_switch_run(void* run, uint64_t cycles, int sending, uint64_t milliseconds) {
    return guarded([&] { static_cast<Run*>(run)->run(cycles, sending != 0, milliseconds); });
}
PX int px_switch_up(void* run) { return static_cast<Run*>(run)->up(); }
PX double px_switch_seconds(void* run) { return static_cast<Run*>(run)->seconds; }
PX int px_switch_write(void* run, uint64_t address, uint64_t value) {
    return guarded([&] { static_cast<Run*>(run)->write(unsigned(address), value); });
}
PX int px_switch_read(void* run, uint64_t address, uint64_t* value) {
    return guarded([&] { *value = static_cast<Run*>(run)->read(unsigned(address)); });
}
PX int px_switch_disable(void* run, uint64_t port, int on) {
    return guarded([&] { static_cast<Run*>(run)->disable(unsigned(port), on != 0); });
}
PX int px_switch_restart(void* run, uint64_t port, int endpoint) {
    return guarded([&] { static_cast<Run*>(run)->restart(unsigned(port), endpoint != 0); });
}
PX void px_switch_totals(void* run, uint64_t* totals, uint64_t* ledger) {
    const Totals t = static_cast<Run*>(run)->totals();
    std::memcpy(totals, &t, sizeof t);
    std::memcpy(ledger, &static_cast<Run*>(run)->ledger.counts, sizeof(LedgerCounts));
}
PX void px_switch_classes(void* run, uint64_t* masks) { static_cast<Run*>(run)->classes(masks); }
PX void px_switch_waiting(void* run, uint64_t* flits) { static_cast<Run*>(run)->waiting(flits); }
// Histograms of latency by class and by phase; `forget`: begin anew.
PX void px_switch_latency(void* run, uint64_t* by_class, uint64_t* by_phase, int forget) {
    Ledger& ledger = static_cast<Run*>(run)->ledger;
    for (const auto& bins : ledger.latency) by_class = std::copy(bins.begin(), bins.end(), by_class);
    for (const auto& bins : ledger.by_phase) by_phase = std::copy(bins.begin(), bins.end(), by_phase);
    if (forget) ledger.forget_latency();
}
