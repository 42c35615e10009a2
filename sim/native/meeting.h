// Where threads wait for each other: the last one does what is to be done between, then all go on.

#ifndef PLEXUS_MEETING_H
#define PLEXUS_MEETING_H

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace plexus {

class Meeting {
public:
    explicit Meeting(unsigned threads) : threads_(threads) {}

    template <typename Between>
    void meet(Between between) {
        const uint64_t round = round_.load();
        if (here_.fetch_add(1) + 1 == threads_) {
            between();
            here_.store(0);
            {
                std::lock_guard<std::mutex> lock(mutex_);
                round_.store(round + 1);
            }
            next_.notify_all();
            return;
        }
        for (unsigned i = 0; i < LOOKS; i++) {
            if (round_.load() != round) return;
        }
        std::unique_lock<std::mutex> lock(mutex_);
        next_.wait(lock, [&] { return round_.load() != round; });
    }

private:
    static constexpr unsigned LOOKS = 50'000;    // some 50 us, a part of a slice; then the processor is for others
    unsigned threads_;
    std::atomic<unsigned> here_{0};
    std::atomic<uint64_t> round_{0};
    std::mutex mutex_;
    std::condition_variable next_;
};

}  // namespace plexus

#endif
