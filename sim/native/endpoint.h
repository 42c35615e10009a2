// One end of a link with its data path: retry buffer, codec, credits, for traffic at flit granularity.

#ifndef PLEXUS_ENDPOINT_H
#define PLEXUS_ENDPOINT_H

#include <deque>

#include "flit_codec.h"
#include "link_end.h"

namespace plexus {

// Who fills and reads the payload of an endpoint's flits.
class FlitUser {
public:
    virtual ~FlitUser() = default;
    // A flit may go: write its 236 bytes (pool bit 0) and a name for it, or return false. A unit is begun only if `link`
    // has credits for all of it, and its flits follow each other.
    virtual bool next(const LinkEnd& link, uint8_t* payload, uint64_t* name) = 0;
    // The flit of that name goes over the pins from now on; `again`: not for the first time.
    virtual void sent(uint64_t name, bool again) = 0;
    // A flit was accepted.
    virtual void accepted(const uint8_t* payload) = 0;
    // A new session began: flits of these names may have arrived or not, what has been begun does not go on.
    virtual void session(const std::vector<uint64_t>& unresolved) = 0;
};

class Endpoint {
public:
    // slots_a_flit: places that are read out in a flit time, 0 for at once.
    Endpoint(const LinkNumbers& numbers, uint16_t session_before, FlitUser& user, double slots_a_flit = 0)
        : link(numbers, session_before), user_(user), pace_(slots_a_flit), slots_(1) {
        while (slots_ < numbers.window) slots_ *= 2;
        buffer_.resize(slots_);
    }

    // A flit time begins: the 256 bytes that this end sends in it, or null for silence. They hold until the next call.
    const uint8_t* begin() {
        link.tick(restart, disable);
        restart = false;
        told();
        drain();
        if (link.silent()) return nullptr;
        if (link.room()) {
            Slot& slot = slot_of(link.next_number());
            if (user_.next(link, slot.bytes, &slot.name)) {
                const uint32_t header = wire::header_of(slot.bytes);
                const bool dedicated = link.spend(unsigned(wire::FLIT_HEADER_class_.of(header)),
                                                  unsigned(wire::FLIT_HEADER_kind.of(header)));
                const uint32_t charged = header | uint32_t(wire::FLIT_HEADER_dedicated.with(dedicated));
                std::memcpy(slot.bytes, &charged, sizeof charged);
                link.enqueue();
            }
        }
        const LinkEnd::Sent sent = link.send();
        if (sent.payload) {
            const Slot& slot = slot_of(sent.number);
            std::memcpy(flit_, slot.bytes, wire::FLIT_PAYLOAD_BYTES);
            user_.sent(slot.name, sent.again);
            payload_flits += !sent.again;
            resent += sent.again;
        } else {
            std::memset(flit_, 0, wire::FLIT_PAYLOAD_BYTES);
            if (sent.control) std::memcpy(flit_, &sent.control_word, sizeof sent.control_word);
        }
        wire::put_dlp(flit_, sent.dlp);
        codec_.encode(flit_);
        return flit_;
    }

    // A flit has come; it is repaired in place. `refuse`: however it looks.
    void hear(uint8_t* flit, bool refuse) {
        const int repaired = refuse ? -1 : codec_.decode(flit);
        if (repaired > 0) link.causes[wire::LinkCause_CORRECTED] += unsigned(repaired);
        if (link.hear(repaired < 0 ? nullptr : flit)) {
            held_.push_back(link.account_of(flit));
            if (pace_ == 0) drain();
            user_.accepted(flit);
        }
        told();
    }

    LinkEnd link;
    bool restart = false, disable = false;
    uint64_t payload_flits = 0, resent = 0;

private:
    struct Slot {
        uint64_t name;
        uint8_t bytes[wire::FLIT_PAYLOAD_BYTES];
    };
    Slot& slot_of(unsigned number) { return buffer_[number & (slots_ - 1)]; }

    void told() {
        if (!link.cleared()) return;
        std::vector<uint64_t> names;
        for (unsigned number : link.unresolved) names.push_back(slot_of(number).name);
        link.unresolved.clear();
        user_.session(names);
    }

    void drain() {
        due_ = pace_ == 0 ? double(held_.size()) : std::min(due_ + pace_, double(held_.size()));
        for (; due_ >= 1; due_ -= 1) {
            link.freed(held_.front());
            held_.pop_front();
        }
    }

    FlitUser& user_;
    const FlitCodec& codec_ = flit_codec();
    double pace_, due_ = 0;
    unsigned slots_;
    std::vector<Slot> buffer_;
    std::deque<unsigned> held_;  // accounts of what has not been read out
    alignas(64) uint8_t flit_[wire::FLIT_BYTES];
};

}  // namespace plexus

#endif
