// The Verilated model with its clock and, in a trace build, its waves.

#ifndef PLEXUS_MODEL_H
#define PLEXUS_MODEL_H

#include <memory>
#include <stdexcept>
#include <string>

#include "Vtop.h"
#include "ports.h"
#include "verilated.h"
#if VM_TRACE
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
        eval();
    }
    // Clock high: registers take their new values.
    void high() {
#ifdef PLEXUS_HAS_clk
        top_->clk = 1;
        eval();
#endif
    }

    void open_waves(const char* path) {
#if VM_TRACE
        context_->traceEverOn(true);
        waves_.reset(new VerilatedVcdC);
        top_->trace(waves_.get(), 99);
        waves_->open(path);
        if (!waves_->isOpen()) {
            waves_.reset();
            throw std::runtime_error(std::string("the wave file ") + path + " cannot be written");
        }
#else
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
    void eval() {
        top_->eval();
#if VM_TRACE
        if (waves_) waves_->dump(half_cycle_++);
#endif
    }

    std::unique_ptr<VerilatedContext> context_;
    std::unique_ptr<Vtop> top_;
#if VM_TRACE
    std::unique_ptr<VerilatedVcdC> waves_;
    uint64_t half_cycle_ = 0;
#endif
};

}  // namespace plexus

#endif
