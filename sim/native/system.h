// Cores of one model, joined by delayed wires: each to each other, requests and responses by themselves.
//
// A thread runs its cores for a slice of at most the wires' delay, one after the other, and then meets the other threads.
// Within a slice no core can tell what another one does, so bits and cycles are the same for any number of threads.

#ifndef PLEXUS_SYSTEM_H
#define PLEXUS_SYSTEM_H

#include <algorithm>
#include <chrono>
#include <ctime>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core_link.h"
#include "delay_wire.h"
#include "driver.h"
#include "meeting.h"

namespace plexus {

class System {
public:
    // `endpoints`: what packets call each of them.
    System(const HbmConfig& hbm, const std::vector<uint32_t>& ids, const std::vector<uint32_t>& endpoints, uint64_t delay,
           uint64_t retire_limit)
        : delay_(delay) {
        for (unsigned i = 0; i < ids.size(); i++) {
            auto part = std::make_unique<Part>(hbm, retire_limit);
            part->driver.core_id = ids[i];
            part->link = std::make_unique<CoreLink>(part->driver.model.top(), i, endpoints);
            part->driver.attached = part->link.get();
            parts_.push_back(std::move(part));
        }
        const unsigned cores = unsigned(ids.size());
        for (unsigned a = 0; a < cores; a++) {
            for (unsigned b = 0; b < cores; b++) {
                if (a == b && cores > 1) continue;    // one alone hears itself, and refuses what is for others
                for (unsigned kind = 0; kind < KINDS; kind++) wires_.push_back({std::make_unique<DelayWire>(delay), a, b, kind});
            }
        }
        for (const Joined& w : wires_) {
            for (const Joined& back : wires_) {
                if (back.from != w.to || back.to != w.from || back.kind != w.kind) continue;
                parts_[w.from]->link->join(w.kind, w.to, w.wire.get(), back.wire.get());
            }
        }
    }

    unsigned cores() const { return unsigned(parts_.size()); }
    Driver& core(unsigned index) { return parts_.at(index)->driver; }
    CoreLink& link(unsigned index) { return *parts_.at(index)->link; }

    void reset(uint64_t cycles) {
        for (auto& part : parts_) part->driver.reset(cycles);
    }

    // `core`: one, or all of them in the same cycle if it is negative.
    void host_write(int core, uint32_t address, uint64_t value) {
        host_pins(core, true, true, address, value);
        step();
        host_pins(core, false);
    }

    uint64_t host_read(unsigned index, uint32_t address) {
        host_pins(int(index), true, false, address);
        step();
        host_pins(int(index), false);
        step();
        return core(index).host_answer();
    }

    // As Driver::run; DONE when all cores are done and nothing is under way between them any more.
    Reason run(uint64_t max_cycles, uint64_t quiet_cycles, uint64_t fault_quiet_cycles, uint64_t milliseconds,
               unsigned threads) {
        const auto begin = Clock::now();
        until_ = begin + std::chrono::milliseconds(milliseconds);
        last_ = now() + max_cycles;
        threads = std::max(1u, std::min(threads, cores()));
        for (const Joined& w : wires_) w.wire->late = plant_late && w.from % threads != w.to % threads;
        quiet_ = quiet_cycles;
        fault_quiet_ = fault_quiet_cycles;
        do {
            state_ = state();
            slices(threads);
            if (state_ == ASK && !busy_since()) {    // silent for so long: whether an engine works, registers tell
                state_ = any_fault() && settled() && silent() > fault_quiet_ ? FAULT : silent() > quiet_ ? STUCK : RUNNING;
            }
        } while (state_ == RUNNING || state_ == ASK);
        seconds += std::chrono::duration<double>(Clock::now() - begin).count();
        return Reason(state_);
    }

    uint64_t now() const { return parts_[0]->driver.now; }

    double seconds = 0;         // inside `run`
    double cpu_seconds = 0;     // of all threads there
    bool plant_late = false;    // a fault: wires between two threads take a cycle more

    // The sentence of PROTOCOL or FATAL.
    std::string message;

private:
    using Clock = std::chrono::steady_clock;
    static constexpr int RUNNING = -1, ASK = -2;    // beside Reason
    static constexpr uint64_t SETTLED_CYCLES = 1024;    // in which what an endpoint has staged reaches memory

    struct Part {
        Part(const HbmConfig& hbm, uint64_t retire_limit) : driver(hbm, retire_limit) {}
        Driver driver;
        std::unique_ptr<CoreLink> link;
    };
    struct Joined {
        std::unique_ptr<DelayWire> wire;
        unsigned from, to, kind;
    };

    void host_pins(int core, bool valid, bool write = false, uint32_t address = 0, uint64_t value = 0) {
        for (unsigned i = 0; i < cores(); i++) {
            if (core < 0 || unsigned(core) == i) parts_[i]->driver.host_pins(valid, write, address, value);
        }
    }

    // A slice of one core.
    void advance(Part& part, uint64_t cycles) {
        Verilated::threadContextp(&part.driver.model.context());
        part.link->begin();
        for (uint64_t i = 0; i < cycles; i++) part.driver.cycle();
    }

    // A cycle of all cores.
    void step() {
        for (auto& part : parts_) advance(*part, 1);
    }

    // Slices until the state is another.
    void slices(unsigned threads) {
        Meeting meeting(threads);
        std::vector<std::string> failed(threads);
        std::vector<double> spent(threads, 0);
        auto work = [&](unsigned thread) {
            const double begin = thread_seconds();
            while (state_ == RUNNING) {
                const uint64_t cycles = std::min(delay_, last_ - now_of(thread));
                try {
                    for (unsigned i = thread; i < cores(); i += threads) advance(*parts_[i], cycles);
                } catch (const std::exception& e) {
                    failed[thread] = e.what();
                }
                meeting.meet([&] {
                    state_ = state();
                    for (const std::string& text : failed) {
                        if (text.empty()) continue;
                        message = text;
                        state_ = FATAL;
                        break;
                    }
                });
            }
            spent[thread] = thread_seconds() - begin;
        };
        std::vector<std::thread> others;
        for (unsigned thread = 1; thread < threads; thread++) others.emplace_back(work, thread);
        work(0);
        for (std::thread& other : others) other.join();
        for (double s : spent) cpu_seconds += s;
    }

    uint64_t now_of(unsigned thread) const { return parts_[thread]->driver.now; }

    static double thread_seconds() {
        timespec t;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
    }

    // Between slices: how it goes on.
    int state() {
        bool done = true;
        for (auto& part : parts_) {
            Driver& d = part->driver;
            done &= bool(d.model.top().done);
            if (!d.hbm.violation().empty()) {
                message = d.hbm.violation();
                return PROTOCOL;
            }
            if (d.model.context().gotFinish()) {
                message = "the model called $finish";
                return FATAL;
            }
        }
        const uint64_t quiet = silent();
        if (done && quiet > SETTLED_CYCLES && settled()) return DONE;
        if (quiet > quiet_ || (quiet > fault_quiet_ && any_fault() && settled())) return ASK;
        if (now() >= last_) return LIMIT;
        if (Clock::now() >= until_) return TIME;
        return RUNNING;
    }

    bool any_fault() const {
        return std::any_of(parts_.begin(), parts_.end(), [](const auto& p) { return p->driver.model.top().fault; });
    }

    // Whether nothing is under way to a memory or between cores.
    bool settled() const {
        return std::all_of(parts_.begin(), parts_.end(), [](const auto& p) { return p->driver.hbm.idle() && p->link->idle(); }) &&
               std::all_of(wires_.begin(), wires_.end(), [](const auto& w) { return w.wire->idle(); });
    }

    // Cycles since anything moved.
    uint64_t silent() const {
        uint64_t last = last_moved_;
        for (const auto& part : parts_) last = std::max(last, part->driver.last_moved);
        return now() - last;
    }

    // Whether engines have worked since it was asked last; then it is not silent.
    bool busy_since() {
        uint64_t busy = 0;
        auto read = [&](uint32_t address) {
            host_pins(-1, true, false, address);
            step();
            host_pins(-1, false);
            step();
            for (auto& part : parts_) busy += part->driver.host_answer();
        };
        for (unsigned e = 0; e < ENGINES; e++) read(BUSY + e * ENGINE_STRIDE);
        read(SLEEP);
        const bool more = busy != busy_;
        busy_ = busy;
        if (more) last_moved_ = now();
        state_ = RUNNING;
        return more;
    }

    uint64_t delay_;
    std::vector<std::unique_ptr<Part>> parts_;
    std::vector<Joined> wires_;
    // What a run was asked for, and how it stands: written between slices only.
    Clock::time_point until_;
    uint64_t last_ = 0, quiet_ = 0, fault_quiet_ = 0;
    int state_ = RUNNING;
    uint64_t busy_ = 0;
    uint64_t last_moved_ = 0;
};

}  // namespace plexus

#endif
