// A wire between two cores: a beat that is sent in cycle t is at the other end in cycle t + delay.
//
// The sender has a credit for each of the 2 x delay beats that the wire holds at most, which is a beat a cycle; one
// comes back `delay` cycles after its beat was taken. So neither end can tell what the other does in the same `delay`
// cycles: both run as many of them by themselves, on any threads, and then meet (`begin`).

#ifndef PLEXUS_DELAY_WIRE_H
#define PLEXUS_DELAY_WIRE_H

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

namespace plexus {

// rtl.base.packet.PACKET_BEAT: first, last, class, endpoint, data.
constexpr unsigned BEAT_BITS = 529;
constexpr unsigned BEAT_WORDS = (BEAT_BITS + 31) / 32;
constexpr unsigned ENDPOINT_LSB = 5;
constexpr unsigned ENDPOINT_BITS = 12;

struct Beat {
    std::array<uint32_t, BEAT_WORDS> words;
    bool first() const { return words[0] & 1; }
    bool last() const { return words[0] >> 1 & 1; }
    unsigned endpoint() const { return words[0] >> ENDPOINT_LSB & ((1u << ENDPOINT_BITS) - 1); }
};

class DelayWire {
public:
    explicit DelayWire(uint64_t delay) : delay_(delay), credits_(2 * delay) {}

    // Both ends have come to one cycle. Each end calls its own before it goes on.
    void begin_sender() { move_all(taken_[turn_sender_ ^= 1], returning_); }
    void begin_receiver() { move_all(sent_[turn_receiver_ ^= 1], coming_); }

    bool room(uint64_t now) {
        while (!returning_.empty() && returning_.front() + delay_ <= now) {
            returning_.pop_front();
            credits_++;
        }
        return credits_ > 0;
    }
    void send(uint64_t now, const Beat& beat) {
        credits_--;
        sent_[turn_sender_ ^ 1].push_back({now + delay_ + late, beat});
    }

    // The beat that is at this end in cycle `now`, or null.
    const Beat* head(uint64_t now) const {
        return !coming_.empty() && coming_.front().due <= now ? &coming_.front().beat : nullptr;
    }
    void take(uint64_t now) {
        coming_.pop_front();
        taken_[turn_receiver_ ^ 1].push_back(now);
    }

    // Between slices: whether no beat is under way.
    bool idle() const { return coming_.empty() && sent_[0].empty() && sent_[1].empty(); }

    uint64_t late = 0;    // cycles more than it should take: a planted fault

private:
    struct Coming {
        uint64_t due;
        Beat beat;
    };

    template <typename T>
    static void move_all(std::vector<T>& from, std::deque<T>& to) {
        to.insert(to.end(), from.begin(), from.end());
        from.clear();
    }

    uint64_t delay_;
    // Of the sender; what is written in one slice is read in the next, so of two places one is each end's.
    uint64_t credits_;
    std::deque<uint64_t> returning_;
    std::vector<Coming> sent_[2];
    unsigned turn_sender_ = 0;
    // Of the receiver.
    alignas(64) std::deque<Coming> coming_;
    std::vector<uint64_t> taken_[2];
    unsigned turn_receiver_ = 0;
};

}  // namespace plexus

#endif
