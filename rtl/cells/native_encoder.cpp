// Model of a flit encoder for plexus_native_encoder.sv: sums of the beats, the last 14 bytes of a flit.
//
// Compile with -O3 -std=c++17.
#include "native_flit.h"

namespace {

enum Fault { NONE, CRC_ORDER, SWAPPED_GROUPS, SUMS_GO_ON };

struct Encoder {
    int bytes;
    bool low_first;
    uint64_t rest = 0;
    plexus::Groups groups;
};

}  // namespace

extern "C" {

void* plexus_encoder_new(int bytes, int low_first) { return new Encoder{bytes, low_first != 0, 0, {}}; }

void plexus_encoder_free(void* handle) { delete static_cast<Encoder*>(handle); }

void plexus_encoder_reset(void* handle) {
    Encoder& e = *static_cast<Encoder*>(handle);
    e.rest = 0;
    e.groups = {};
}

// A beat that is taken. `tail`: 14 bytes, with the last beat of a flit.
void plexus_encoder_beat(void* handle, int first, int last, int fault, const uint32_t* data, uint32_t* tail) {
    using namespace plexus;
    constexpr int TAIL = FLIT_BYTES - INFO_BYTES;
    const FlitTables& t = flit_tables();
    Encoder& e = *static_cast<Encoder*>(handle);
    const uint8_t* bytes = reinterpret_cast<const uint8_t*>(data);
    if (first && fault != SUMS_GO_ON) {
        e.rest = 0;
        e.groups = {};
    }
    const int count = last ? e.bytes - TAIL : e.bytes;
    e.rest = crc_over(t, e.rest, bytes, count);
    e.groups.over(t, bytes, count);
    if (!last) return;

    uint8_t out[16] = {};
    put_crc(e.rest, e.low_first != (fault == CRC_ORDER), out);
    Groups whole = e.groups;
    whole.over(t, out, TAIL);
    whole.put(out + FEC_AT - INFO_BYTES);
    if (fault == SWAPPED_GROUPS)
        for (int at = 8; at <= 11; at += 3) {
            const uint8_t other = out[at];
            out[at] = out[at + 1];
            out[at + 1] = other;
        }
    memcpy(tail, out, sizeof out);
    // What follows without a first beat goes on behind 14 bytes of 0.
    const uint8_t zero[TAIL] = {};
    e.rest = crc_over(t, e.rest, zero, TAIL);
    e.groups.over(t, zero, TAIL);
}

}  // extern "C"
