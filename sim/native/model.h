// The Verilated model with its clock and, in a trace build, its waves.

#ifndef PLEXUS_MODEL_H
#define PLEXUS_MODEL_H

#include <memory>
#include <stdexcept>
#include <string>

#include "Vtop.h"
#include "ports.h"
#include "verilated.h"
#if VM_TRACE_FST
#include "verilated_fst_c.h"
#elif VM_TRACE
#include "verilated_vcd_c.h"
#endif

namespace plexus {

class Model {
public:
    Model() : context_(new VerilatedContext), top_(new Vtop(context_.get(), "top")) {}
    ~Model() {
        close_waves();
        // Scopes of the design leave the context that this thread used last, which may be another model's.
        Verilated::threadContextp(context_.get());
        top_->final();
    }

    Vtop& top() { return *top_; }
    VerilatedContext& context() { return *context_; }

    // Clock low: inputs have changed, everything combinational and every clock gate settles.
    void low() {
#ifdef PLEXUS_HAS_clk
        top_->clk = 0;
#endif
        top_->eval();
        dump(0);
    }
    // The same for a look at the outputs: `low` for this cycle follows.
    void settle() { top_->eval(); }
    // Clock high: registers take their new values.
    void high() {
#ifdef PLEXUS_HAS_clk
        top_->clk = 1;
        top_->eval();
#endif
        dump(1);
#if VM_TRACE
        cycle_++;
#endif
    }

    // What follows goes into a file, a half cycle (low, high) a unit of time, which begins with 0; of it only the cycles
    // from `from` on and before `until`, and only what lies in `scope` and below ("top core tensor"), if that is given.
    void open_waves(const char* path, const char* scope = "", uint64_t from = 0, uint64_t until = UINT64_MAX) {
#if VM_TRACE
        context_->traceEverOn(true);
        waves_.reset(new Waves);
        if (*scope) waves_->dumpvars(999, scope);
        top_->trace(waves_.get(), 999);
        waves_->open(path);
        if (!waves_->isOpen()) {
            waves_.reset();
            throw std::runtime_error(std::string("the wave file ") + path + " cannot be written");
        }
        cycle_ = 0;
        from_ = from;
        until_ = until;
#else
        (void)scope, (void)from, (void)until;
        throw std::runtime_error(std::string("this model was built without waves, so ") + path + " stays unwritten");
#endif
    }
    void close_waves() {
#if VM_TRACE
        if (waves_) waves_->close();
        waves_.reset();
#endif
    }

private:
    void dump(unsigned half) {
#if VM_TRACE
        if (!waves_ || cycle_ < from_) return;
        if (cycle_ < until_) {
            waves_->dump(2 * cycle_ + half);
        } else {
            close_waves();
        }
#else
        (void)half;
#endif
    }

    std::unique_ptr<VerilatedContext> context_;
    std::unique_ptr<Vtop> top_;
#if VM_TRACE
#if VM_TRACE_FST
    using Waves = VerilatedFstC;
#else
    using Waves = VerilatedVcdC;
#endif
    std::unique_ptr<Waves> waves_;
    uint64_t cycle_ = 0, from_ = 0, until_ = UINT64_MAX;
#endif
};

}  // namespace plexus

#endif
