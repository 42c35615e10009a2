// A core's four packet streams (rtl.dma.fabric.link.LINK_PORTS) at its wires to and from the other cores.
//
// A packet goes on the wire to the core of its endpoint; one for no core here goes to the next core, which refuses it. A
// beat waits in a register of its kind until that wire has room. Of the packets that come, one of each kind is handed
// over at a time, whole; wires take turns.

#ifndef PLEXUS_CORE_LINK_H
#define PLEXUS_CORE_LINK_H

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "delay_wire.h"
#include "driver.h"

namespace plexus {

enum Kind : unsigned { REQUEST = 0, RESPONSE = 1, KINDS = 2 };

class CoreLink : public Attached {
public:
    CoreLink(Vtop& top, unsigned index, const std::vector<uint32_t>& endpoints) : index_(index), endpoints_(endpoints) {
        *pin<CData>(top, "request_room") = 0xf;    // a wire has room for all classes or none
        for (unsigned kind = 0; kind < KINDS; kind++) {
            const std::string name = kind == REQUEST ? "request" : "response";
            Way& w = ways_[kind];
            w.out_valid = pin<CData>(top, name + "_out__valid");
            w.out_ready = pin<CData>(top, name + "_out__ready");
            w.out_payload = beat_pin(top, name + "_out__payload");
            w.in_valid = pin<CData>(top, name + "_in__valid");
            w.in_ready = pin<CData>(top, name + "_in__ready");
            w.in_payload = beat_pin(top, name + "_in__payload");
            w.to.resize(endpoints.size());
            w.from.resize(endpoints.size());
        }
    }

    void join(unsigned kind, unsigned other, DelayWire* to, DelayWire* from) {
        ways_[kind].to[other] = to;
        ways_[kind].from[other] = from;
    }

    // A slice begins, behind a meeting.
    void begin() {
        for (Way& w : ways_) {
            for (DelayWire* wire : w.to) {
                if (wire) wire->begin_sender();
            }
            for (DelayWire* wire : w.from) {
                if (wire) wire->begin_receiver();
            }
        }
    }

    bool sample(uint64_t now) override {
        bool moved = false;
        for (Way& w : ways_) {
            if (*w.out_valid && *w.out_ready) {
                std::memcpy(w.held.words.data(), w.out_payload, sizeof w.held.words);
                if (w.held.first()) w.target = target(w.held.endpoint());
                w.holds = true;
                moved = true;
            }
            if (w.holds && w.to[w.target]->room(now)) {
                if (!lose || ++sent_ % lose) w.to[w.target]->send(now, w.held);
                w.holds = false;
                beats++;
                moved = true;
            }
            if (*w.in_valid && *w.in_ready) {
                w.from[w.source]->take(now);
                w.taken = true;
                moved = true;
            }
        }
        return moved;
    }

    void drive(uint64_t next) override {
        for (Way& w : ways_) {
            *w.out_ready = !w.holds;
            if (w.taken) *w.in_valid = 0;
            w.taken = false;
            if (!*w.in_valid) show(w, next);
        }
    }

    // Whether no beat waits to go out.
    bool idle() const { return !ways_[REQUEST].holds && !ways_[RESPONSE].holds; }

    uint64_t beats = 0;     // that have left
    uint64_t lose = 0;      // every so many beats one is lost: a planted fault

private:
    struct Way {
        const CData* out_valid;
        CData* out_ready;
        const void* out_payload;
        CData* in_valid;
        const CData* in_ready;
        void* in_payload;
        std::vector<DelayWire*> to, from;    // by core
        Beat held;
        bool holds = false;
        unsigned target = 0;    // core of the packet that goes out
        unsigned source = 0;    // of the one that comes in, or that came last
        bool taken = false;     // what is on the pins
        bool open = false;      // its last beat is still to come
    };

    static void* beat_pin(Vtop& top, const std::string& name) {
        const Pin found = find_pin(top, name);
        if (!found.at || found.width != BEAT_BITS) {
            throw std::runtime_error("the top has no port " + name + " of " + std::to_string(BEAT_BITS) +
                                     " bits: cores that are joined are built with a link");
        }
        return found.at;
    }

    unsigned target(unsigned endpoint) const {
        for (unsigned i = 0; i < endpoints_.size(); i++) {
            if (endpoints_[i] == endpoint && ways_[REQUEST].to[i]) return i;
        }
        return (index_ + 1) % unsigned(endpoints_.size());
    }

    void show(Way& w, uint64_t next) {
        const unsigned cores = unsigned(w.from.size());
        const Beat* beat = w.from[w.source] ? w.from[w.source]->head(next) : nullptr;
        if (!w.open) {
            beat = nullptr;
            for (unsigned k = 1; k <= cores && !beat; k++) {
                const unsigned core = (w.source + k) % cores;
                if (!w.from[core] || !(beat = w.from[core]->head(next))) continue;
                w.source = core;
                break;
            }
        }
        if (!beat) return;
        w.open = !beat->last();
        std::memcpy(w.in_payload, beat->words.data(), sizeof beat->words);
        *w.in_valid = 1;
    }

    unsigned index_;
    std::vector<uint32_t> endpoints_;
    uint64_t sent_ = 0;
    Way ways_[KINDS];
};

}  // namespace plexus

#endif
