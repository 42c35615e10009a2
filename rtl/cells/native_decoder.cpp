// Model of a flit decoder for plexus_native_decoder.sv, cycle by cycle.
//
// A flit is judged when its last beat arrives, repaired first and divided again then; its beats leave three
// cycles later. Compile with -O3 -std=c++17.
#include "native_flit.h"

namespace {

using namespace plexus;

enum Fault {
    NONE,
    SWAPPED_GROUPS,
    PAD_REPAIRED,
    CHECK_HOPELESS,
    NO_CRC,
    CRC_BEFORE_REPAIR,
    NEVER_REFUSED,
    RAW_DLP,
    REPAIR_ANYWAY,
    COUNT_ANYWAY,
    SUMS_GO_ON,
};

struct Flit {
    uint8_t bytes[FLIT_BYTES];
    uint64_t due;     // cycle of its first beat
    uint64_t dlp;
    uint32_t fix;     // 9 bits a group: hit, byte
    uint32_t good, groups;
};

struct Decoder {
    int bytes, beats;
    bool low_first;
    uint64_t now = 0;
    int index;               // of the next beat; beats: waiting for a first one
    uint8_t in[FLIT_BYTES];
    Flit ring[4];
    uint32_t head = 0, tail = 0;
    int leaving = 0;         // beat of ring[head] that leaves next
    Groups before;           // for a planted fault

    Decoder(int b, bool l) : bytes(b), beats(FLIT_BYTES / b), low_first(l), index(beats) {}
};

// What the FEC finds in one group: the byte, or -1; its error.
int locate(const FlitTables& t, int group, int check, int parity, int fault, uint8_t* error) {
    const int at_check = FEC_AT + (group + 2) % 3;
    *error = static_cast<uint8_t>(parity ? parity : check);
    if (!parity) return fault == CHECK_HOPELESS ? -1 : at_check;
    if (!check) return at_check + 3;
    const int place = SPAN - (t.fec_field.log[check] - t.fec_field.log[parity] + 255) % 255;
    const int places = group == 0 || fault == PAD_REPAIRED ? SPAN : SPAN - 1;
    return place >= 0 && place < places ? 3 * place + group : -1;
}

void judge(Decoder& d, bool refuse, int fault) {
    const FlitTables& t = flit_tables();
    Flit& flit = d.ring[d.tail++ & 3];
    uint8_t fixed[FLIT_BYTES], sums[6];
    memcpy(flit.bytes, d.in, FLIT_BYTES);
    memcpy(fixed, d.in, FLIT_BYTES);
    const uint8_t zero[6] = {};
    Groups groups = fault == SUMS_GO_ON ? d.before : Groups();
    groups.over(t, d.in, FEC_AT);
    groups.over(t, zero, 6);
    d.before = groups;
    groups.put(sums);

    flit.fix = flit.groups = 0;
    bool hopeless = false;
    for (int group = 0; group < 3; group++) {
        const int from = (fault == SWAPPED_GROUPS ? (3 - group) % 3 : group) + 2;  // of the FEC's bytes: 1, 2, 0
        const int check = sums[from % 3] ^ d.in[FEC_AT + from % 3];
        const int parity = sums[3 + from % 3] ^ d.in[FEC_AT + 3 + from % 3];
        if (!check && !parity) continue;
        uint8_t error;
        const int byte = locate(t, group, check, parity, fault, &error);
        if (byte < 0) {
            hopeless = true;
            continue;
        }
        fixed[byte] ^= error;
        flit.fix |= (1u | static_cast<uint32_t>(byte) << 1) << (9 * group);
        flit.groups++;
    }
    const uint8_t* judged = fault == CRC_BEFORE_REPAIR ? d.in : fixed;
    uint8_t crc[8];
    put_crc(crc_over(t, 0, judged, INFO_BYTES), d.low_first, crc);
    const bool same = !memcmp(crc, judged + INFO_BYTES, sizeof crc) || fault == NO_CRC;
    flit.good = same && !hopeless && !(refuse && fault != NEVER_REFUSED);
    if (flit.good || fault == REPAIR_ANYWAY) memcpy(flit.bytes, fixed, FLIT_BYTES);
    if (!flit.good && fault != COUNT_ANYWAY) flit.groups = 0;
    const uint8_t* dlp = (flit.good && fault != RAW_DLP ? fixed : d.in) + DLP_AT;
    flit.dlp = 0;
    for (int n = 0; n < DLP_BYTES; n++) flit.dlp = flit.dlp << 8 | dlp[n];
    flit.due = d.now + 2;
}

}  // namespace

extern "C" {

void* plexus_decoder_new(int bytes, int low_first) { return new Decoder(bytes, low_first != 0); }

void plexus_decoder_free(void* handle) { delete static_cast<Decoder*>(handle); }

void plexus_decoder_reset(void* handle) {
    Decoder& d = *static_cast<Decoder*>(handle);
    d.index = d.beats;
    d.head = d.tail = 0;
    d.leaving = 0;
    d.before = {};
}

// A clock edge. Returns bit 0: `out` and `status` hold a beat that is shown from now on; bit 1: more will leave.
// `control`: valid 1, first 2, last 4, refuse 8. `status` from bit 0: DLP 48, fixes 27, groups 2, good, first, last.
int plexus_decoder_step(void* handle, int control, int fault, const uint32_t* data, uint32_t* out, uint32_t* status) {
    Decoder& d = *static_cast<Decoder*>(handle);
    d.now++;
    if (control & 1) {
        const bool last = control & 4;
        const int here = control & 2 ? 0 : d.index;
        if (here < d.beats) memcpy(d.in + here * d.bytes, data, d.bytes);
        d.index = here == d.beats || last ? d.beats : here + 1;
        if (last && here == d.beats - 1) judge(d, control & 8, fault);
    }
    if (d.head == d.tail) return 0;
    const Flit& flit = d.ring[d.head & 3];
    if (d.now < flit.due) return 2;
    const uint32_t first = d.leaving == 0, last = d.leaving == d.beats - 1;
    memcpy(out, flit.bytes + d.leaving * d.bytes, d.bytes);
    const uint64_t rest = static_cast<uint64_t>(flit.fix) | static_cast<uint64_t>(flit.groups) << 27 |
                          static_cast<uint64_t>(flit.good) << 29 | first << 30 | static_cast<uint64_t>(last) << 31;
    status[0] = static_cast<uint32_t>(flit.dlp);
    status[1] = static_cast<uint32_t>(flit.dlp >> 32) | static_cast<uint32_t>(rest << 16);
    status[2] = static_cast<uint32_t>(rest >> 16);
    d.leaving = last ? 0 : d.leaving + 1;
    if (last) d.head++;
    return 1 | (d.head == d.tail ? 0 : 2);
}

}  // extern "C"
