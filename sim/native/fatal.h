// What the model does when it stops itself: an exception for the driver. Included once in a library.

#ifndef PLEXUS_FATAL_H
#define PLEXUS_FATAL_H

#include <stdexcept>
#include <string>

#include "verilated.h"

void vl_fatal(const char*, int line, const char* scope, const char* message) {
    throw std::runtime_error(std::string("the model stopped in ") + (scope ? scope : "") + ", line " +
                             std::to_string(line) + ": " + message);
}
void vl_stop(const char* file, int line, const char* scope) { vl_fatal(file, line, scope, "$stop"); }
void vl_finish(const char* file, int line, const char* scope) { vl_fatal(file, line, scope, "$finish"); }

#endif
