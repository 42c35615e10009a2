// An HBM behind AXI4 managers: latency, shared bandwidth, order, errors, protocol checks.
//
// Timing, with the cycle of a handshake counted as 0:
//   AR accepted -> first R beat `latency_cycles` later at the earliest;
//   last W beat taken from its buffer -> B `latency_cycles` later at the earliest.
// Bandwidth: every cycle adds `bytes_per_cycle` tokens, a beat of either direction costs
// `port_bytes`; ports and directions take turns, those with urgent beats their own; a port moves one R and one W beat a cycle at most.
// Order: beats of bursts with AxQOS of 8 to 15 go before all others, also between the beats of a burst of another id;
// otherwise reads of a port are in the order of AR, as all of one id are, and writes in that of AW.
// An unused token is lost, except for less than one beat, so that the rate is exact.

#ifndef PLEXUS_HBM_H
#define PLEXUS_HBM_H

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace plexus {

constexpr unsigned MAX_PORT_BYTES = 128;

struct HbmConfig {
    uint64_t ports;
    uint64_t port_bytes;
    uint64_t bytes_per_cycle;
    uint64_t latency_cycles;
    uint64_t capacity_bytes;
};

// Where the signals of one manager live in the model. Outputs of the model are read, inputs written.
struct AxiPins {
    const uint8_t* arvalid;
    uint8_t* arready;
    const uint8_t* arid;
    const uint64_t* araddr;
    const uint8_t* arlen;
    const uint8_t* arsize;
    const uint8_t* arburst;
    const uint8_t* arqos;
    uint8_t* rvalid;
    const uint8_t* rready;
    uint8_t* rid;
    void* rdata;
    uint8_t* rresp;
    uint8_t* rlast;
    const uint8_t* awvalid;
    uint8_t* awready;
    const uint8_t* awid;
    const uint64_t* awaddr;
    const uint8_t* awlen;
    const uint8_t* awsize;
    const uint8_t* awburst;
    const uint8_t* awqos;
    const uint8_t* wvalid;
    uint8_t* wready;
    const void* wdata;
    const void* wstrb;
    const uint8_t* wlast;
    uint8_t* bvalid;
    const uint8_t* bready;
    uint8_t* bid;
    uint8_t* bresp;
};

struct HbmCounters {
    uint64_t read_bursts;
    uint64_t read_beats;
    uint64_t write_bursts;
    uint64_t write_beats;
    uint64_t written_bytes;       // bytes whose strobe was set
    uint64_t refused_cycles;      // a beat was due and found no bandwidth
};

class Hbm {
public:
    explicit Hbm(const HbmConfig& config);
    ~Hbm();
    Hbm(const Hbm&) = delete;
    Hbm& operator=(const Hbm&) = delete;

    void bind(unsigned port, const AxiPins& pins);
    // With settled outputs, before the rising edge of cycle `now`. Returns whether anything moved.
    bool sample(uint64_t now);
    // After that edge: puts the answers on the pins.
    void drive();

    bool idle() const;
    uint8_t* memory() { return memory_; }
    uint64_t capacity() const { return config_.capacity_bytes; }
    const HbmCounters& counters() const { return counters_; }
    // Empty, or what a manager did against the protocol, in a sentence.
    const std::string& violation() const { return violation_; }

private:
    struct Burst {
        uint64_t address;    // of the next beat, aligned
        uint64_t due;        // first cycle in which a read beat may be on the pins
        unsigned beats;      // left
        uint8_t id;
        bool error;
        bool urgent;
    };
    struct Response {
        uint64_t due;
        uint8_t id;
        uint8_t code;
    };
    struct WriteBeat {
        uint8_t data[MAX_PORT_BYTES];
        uint8_t strobe[MAX_PORT_BYTES / 8];
        bool last;
    };
    struct Port {
        AxiPins pins{};
        std::deque<Burst> reads[2];       // [1]: urgent
        std::deque<Burst> writes;
        std::deque<Response> responses;
        std::vector<WriteBeat> buffer;    // ring
        unsigned buffer_head = 0;
        unsigned buffer_used = 0;
        // What the pins show from the next drive() on.
        bool read_valid = false;
        bool read_changed = false;
        bool read_last = false;
        bool response_valid = false;
        bool address_waits[2] = {false, false};
        uint64_t address_was[2] = {0, 0};
        uint32_t rest_was[2] = {0, 0};    // id, length, QoS
        bool write_waits = false;
        uint8_t read_data[MAX_PORT_BYTES];
        uint8_t read_id = 0;
        uint8_t read_code = 0;
        uint8_t response_id = 0;
        uint8_t response_code = 0;
    };

    bool accept(Port& port, unsigned index, uint64_t now);
    void check_address(unsigned index, bool write, uint64_t address, unsigned beats, unsigned size, unsigned burst);
    void check_held(Port& port, unsigned index, bool write, bool valid, bool ready, uint64_t address, uint32_t rest);
    void violate(unsigned index, const std::string& what);
    bool wants(const Port& port, bool write, bool urgent, uint64_t now) const;
    void serve_read(Port& port, bool urgent);
    void serve_write(Port& port, unsigned index, uint64_t now);

    HbmConfig config_;
    uint8_t* memory_ = nullptr;
    std::vector<Port> ports_;
    uint64_t tokens_ = 0;
    unsigned turn_[2] = {0, 0};    // [1]: of the urgent
    unsigned urgent_ = 0;    // bursts under way
    HbmCounters counters_{};
    std::string violation_;
};

}  // namespace plexus

#endif
