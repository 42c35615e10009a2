// A Verilated port (rtl/link/device.py) with what a host keeps beside it: packets that wait to be taken by the port, and
// packets it has delivered. FlitPort is one at flit granularity, LanePort (link_pair.cpp) one with lanes.

#ifndef PLEXUS_PORT_MODEL_H
#define PLEXUS_PORT_MODEL_H

#include <array>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "model.h"
#include "pins.h"

namespace plexus {

constexpr unsigned FLIT = 256;          // rtl.contract.link.FLIT_BYTES
constexpr unsigned PACKET_HEADER = 16;  // rtl.contract.link.PACKET_HEADER_BYTES
constexpr unsigned PACKET_LONGEST = PACKET_HEADER + 512 + 8;

struct Packet {
    uint8_t cls;
    std::vector<uint8_t> bytes;
};

inline unsigned opcode_of(const uint8_t* packet) { return packet[0] & 15; }

// Bytes behind the header of a packet, by its opcode, flags and length (rtl.contract.link.PAYLOAD_OPCODES).
inline unsigned body_bytes(const uint8_t* packet) {
    const unsigned opcode = opcode_of(packet);
    const bool carries = opcode == 0 || opcode == 1 || opcode == 3 || opcode == 5;
    const unsigned length = packet[1] | (packet[2] & 3u) << 8;
    return (carries ? length : 0) + (packet[0] >> 4 & 1 ? 8 : 0);
}

inline bool is_response(const uint8_t* packet) { return opcode_of(packet) == 5 || opcode_of(packet) == 6; }

class PortModel {
public:
    explicit PortModel(uint16_t session)
        : beat_(find_pin(model_.top(), "packet_data").width / 8),
          packet_(static_cast<uint8_t*>(wide_pin(model_.top(), "packet_data", beat_))),
          out_{static_cast<uint8_t*>(wide_pin(model_.top(), "request_data", beat_)),
               static_cast<uint8_t*>(wide_pin(model_.top(), "response_data", beat_))} {
        Vtop& top = model_.top();
        top.session_init = session;
        top.rx_valid = 0;
        top.packet_valid = 0;
        top.restart = 0;
        top.disabled = 0;
        top.take = 3;
        top.rst = 1;
        for (int i = 0; i < 4; i++) {
            model_.low();
            model_.high();
        }
        top.rst = 0;
    }

    Vtop& top() { return model_.top(); }
    void open_waves(const char* path) { model_.open_waves(path); }

    // Whether a queue (class * 2 + kind) has room, and no packet of it still waits here.
    bool takes(unsigned queue) { return (model_.top().room & ~waiting_) >> queue & 1; }

    // False if the packet's queue does not take one now.
    bool send(uint8_t cls, const uint8_t* bytes, uint64_t count) {
        const unsigned queue = cls * 2u + is_response(bytes);
        if (!takes(queue)) return false;
        waiting_ |= 1u << queue;
        staged_.push_back({cls, std::vector<uint8_t>(bytes, bytes + count)});
        return true;
    }

    // A link cycle: its first half shows the outputs, its second half takes the inputs.
    void low() {
        feed();
        model_.low();
        collect();
        taken_in_ = model_.top().packet_valid && model_.top().packet_ready;
    }
    void high() {
        model_.high();
        if (taken_in_) advance();
        cycles++;
    }

    std::deque<Packet> taken;
    uint64_t cycles = 0;

protected:
    Model model_;

private:
    // The next beat of the packet under way, or the first of one whose queue has room.
    void feed() {
        Vtop& top = model_.top();
        if (top.packet_valid) return;
        if (!busy_) {
            if (staged_.empty()) return;
            current_ = std::move(staged_.front());
            staged_.pop_front();
            busy_ = true;
            at_ = 0;
        }
        present();
    }

    void present() {
        Vtop& top = model_.top();
        const size_t size = current_.bytes.size();
        const size_t end = std::min<size_t>(size, at_ + beat_);
        std::memcpy(packet_, current_.bytes.data() + at_, end - at_);
        std::memset(packet_ + (end - at_), 0, beat_ - (end - at_));
        uint64_t address = 0;
        if (size >= PACKET_HEADER) std::memcpy(&address, current_.bytes.data() + 5, 8);
        top.packet_valid = 1;
        top.packet_first = at_ == 0;
        top.packet_last = end == size;
        top.packet_class = current_.cls;
        top.packet_endpoint = uint16_t(address >> 44 & 0xfff);  // the identity table
        next_ = end;
    }

    void advance() {
        Vtop& top = model_.top();
        top.packet_valid = 0;
        at_ = next_;
        if (at_ >= current_.bytes.size()) {
            waiting_ &= ~(1u << (current_.cls * 2u + is_response(current_.bytes.data())));
            busy_ = false;
        }
    }

    void collect() {
        Vtop& top = model_.top();
        for (unsigned kind = 0; kind < 2; kind++) {
            const bool valid = kind ? top.response_valid : top.request_valid;
            if (!valid || !(top.take >> kind & 1)) continue;
            const bool first = kind ? top.response_first : top.request_first;
            const bool last = kind ? top.response_last : top.request_last;
            std::vector<uint8_t>& bytes = partly_[kind];
            if (first) bytes.clear();
            bytes.insert(bytes.end(), out_[kind], out_[kind] + beat_);
            if (!last) continue;
            bytes.resize(PACKET_HEADER + body_bytes(bytes.data()));
            taken.push_back({uint8_t(kind ? top.response_class : top.request_class), bytes});
        }
    }

    unsigned beat_;  // bytes of a beat of packets
    uint8_t* packet_;
    std::array<uint8_t*, 2> out_;
    std::array<std::vector<uint8_t>, 2> partly_;
    std::deque<Packet> staged_;
    Packet current_{};
    bool busy_ = false, taken_in_ = false;
    size_t at_ = 0, next_ = 0;
    uint32_t waiting_ = 0;  // queues with a packet in `staged_` or under way
};

}  // namespace plexus

#endif
