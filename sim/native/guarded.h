// Calls from Python: an exception becomes a value and a sentence.

#ifndef PLEXUS_GUARDED_H
#define PLEXUS_GUARDED_H

#include <exception>
#include <string>

namespace plexus {

inline thread_local std::string error;

// Runs `body`; an exception becomes `failed` and a sentence for px_error().
template <typename Body, typename Value>
Value guarded(Value failed, Body body) {
    try {
        return body();
    } catch (const std::exception& e) {
        error = e.what();
    } catch (...) {
        error = "an unknown failure in the model";
    }
    return failed;
}

}  // namespace plexus

#endif
