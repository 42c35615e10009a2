// Words, numbers and limits of the link. tests/unit/test_native_words.py holds them against rtl/contract/link.py.

#ifndef PLEXUS_LINK_WORDS_H
#define PLEXUS_LINK_WORDS_H

#include <cstdint>
#include <cstring>

namespace plexus::wire {

// X(name in rtl.contract.link, value)
#define PLEXUS_NUMBERS(X)          \
    X(FLIT_BYTES, 256)             \
    X(FLIT_PAYLOAD_BYTES, 236)     \
    X(FLIT_HEADER_BYTES, 4)        \
    X(FLIT_INFO_BYTES, 242)        \
    X(DLP_AT, 236)                 \
    X(DLP_BYTES, 6)                \
    X(CRC_AT, 242)                 \
    X(FEC_AT, 250)                 \
    X(FEC_GROUPS, 3)               \
    X(FEC_SPAN, 84)                \
    X(CLASSES, 8)                  \
    X(UNIT_FLITS_MAX, 4)           \
    X(NO_HEADER, 63)               \
    X(PACKET_HEADER_BYTES, 16)     \
    X(PACKET_BYTES_MAX, 512)       \
    X(WORD_BYTES, 4)               \
    X(CREDIT_MODULUS, 4096)        \
    X(DEDICATED_FLITS, 4)          \
    X(NO_PROGRESS_FLITS, 1500)     \
    X(RETRAINS_WITHOUT_PROGRESS, 3) \
    X(REFUSED_IN_A_ROW, 64)        \
    X(REPEAT_FLITS, 32)            \
    X(VERSION, 1)

#define PLEXUS_NUMBER(name, value) constexpr unsigned name = value;
PLEXUS_NUMBERS(PLEXUS_NUMBER)
#undef PLEXUS_NUMBER

// X(word of rtl.contract.link, field, lowest bit, bits)
#define PLEXUS_FIELDS(X)              \
    X(DLP, count, 0, 12)              \
    X(DLP, vc, 13, 3)                 \
    X(DLP, ack, 16, 10)               \
    X(DLP, dedicated, 27, 1)          \
    X(DLP, credit_kind, 28, 2)        \
    X(DLP, nak_id, 30, 2)             \
    X(DLP, seq, 32, 10)               \
    X(DLP, epoch, 42, 2)              \
    X(DLP, one, 44, 1)                \
    X(DLP, prior_payload, 45, 1)      \
    X(DLP, usage, 46, 2)              \
    X(FLIT_HEADER, zero, 0, 4)        \
    X(FLIT_HEADER, offset, 4, 6)      \
    X(FLIT_HEADER, tail, 10, 1)       \
    X(FLIT_HEADER, head, 11, 1)       \
    X(FLIT_HEADER, dedicated, 12, 1)  \
    X(FLIT_HEADER, kind, 13, 1)       \
    X(FLIT_HEADER, vc, 14, 3)         \
    X(FLIT_HEADER, class_, 17, 3)     \
    X(FLIT_HEADER, endpoint, 20, 12)  \
    X(CONTROL, control_kind, 0, 4)    \
    X(CONTROL, echo_valid, 4, 1)      \
    X(CONTROL, heard, 5, 1)           \
    X(CONTROL, version, 8, 8)         \
    X(CONTROL, session, 16, 16)       \
    X(CONTROL, echo, 32, 16)          \
    X(CONTROL, vcs, 48, 4)            \
    X(CONTROL, classes, 52, 4)        \
    X(CONTROL, window, 56, 10)        \
    X(CONTROL, lanes, 66, 5)          \
    X(CONTROL, spare_lanes, 71, 2)    \
    X(PACKET_HEADER, opcode, 0, 4)    \
    X(PACKET_HEADER, length_bytes, 8, 10) \
    X(PACKET_HEADER, tag, 18, 10)     \
    X(PACKET_HEADER, source, 28, 12)  \
    X(PACKET_HEADER, address, 40, 64)

using Word = unsigned __int128;  // widest word: 128 bits

struct Field {
    unsigned at, bits;
    constexpr Word mask() const { return (Word(1) << bits) - 1; }
    constexpr uint64_t of(Word word) const { return uint64_t(word >> at & mask()); }
    constexpr Word with(uint64_t value) const { return (Word(value) & mask()) << at; }
};

#define PLEXUS_FIELD(word, field, at, bits) constexpr Field word##_##field{at, bits};
PLEXUS_FIELDS(PLEXUS_FIELD)
#undef PLEXUS_FIELD

// X(enumeration of rtl.contract.link, member, value)
#define PLEXUS_MEMBERS(X)            \
    X(Usage, NOP, 0)                 \
    X(Usage, PAYLOAD, 1)             \
    X(Usage, CONTROL, 2)             \
    X(Usage, RESERVED, 3)            \
    X(CreditKind, NONE, 0)           \
    X(CreditKind, RESPONSE, 2)       \
    X(ControlKind, HANDSHAKE, 1)     \
    X(ControlKind, RETRAIN, 2)       \
    X(PacketOpcode, WRITE, 0)        \
    X(PacketOpcode, ADD, 1)          \
    X(PacketOpcode, FETCH_ADD, 3)    \
    X(PacketOpcode, READ_RESPONSE, 5) \
    X(PacketOpcode, ERROR_RESPONSE, 6) \
    X(PacketOpcode, END, 15)         \
    X(LinkState, DOWN, 0)            \
    X(LinkState, ALIGN, 1)           \
    X(LinkState, HANDSHAKE, 2)       \
    X(LinkState, UP, 3)              \
    X(LinkState, RETRAIN, 4)         \
    X(LinkState, DISABLED, 5)        \
    X(LinkCause, REFUSED, 0)         \
    X(LinkCause, MALFORMED, 1)       \
    X(LinkCause, DUPLICATE, 2)       \
    X(LinkCause, GAP, 3)             \
    X(LinkCause, REPLAY, 4)          \
    X(LinkCause, BAD_ACK, 5)         \
    X(LinkCause, CREDIT_OVERRUN, 6)  \
    X(LinkCause, BAD_CREDIT, 7)      \
    X(LinkCause, BAD_UNIT, 8)        \
    X(LinkCause, BAD_PACKET, 9)      \
    X(LinkCause, RETRAINED, 10)      \
    X(LinkCause, DOWN, 11)           \
    X(LinkCause, UNRESOLVED, 12)     \
    X(LinkCause, CORRECTED, 13)      \
    X(LinkCause, SPURIOUS, 14)       \
    X(LinkCause, FOREIGN, 15)

#define PLEXUS_MEMBER(kind, member, value) constexpr unsigned kind##_##member = value;
PLEXUS_MEMBERS(PLEXUS_MEMBER)
#undef PLEXUS_MEMBER
constexpr unsigned CAUSES = 16;

// The DLP of a flit: its first byte holds the highest bits.
inline uint64_t dlp_of(const uint8_t* flit) {
    uint64_t word = 0;
    for (unsigned n = 0; n < DLP_BYTES; n++) word = word << 8 | flit[DLP_AT + n];
    return word;
}
inline void put_dlp(uint8_t* flit, uint64_t word) {
    for (unsigned n = 0; n < DLP_BYTES; n++) flit[DLP_AT + n] = uint8_t(word >> 8 * (DLP_BYTES - 1 - n));
}

inline uint32_t header_of(const uint8_t* flit) {
    uint32_t word;
    std::memcpy(&word, flit, sizeof word);
    return word;
}
inline Word word_of(const uint8_t* bytes) {
    Word word;
    std::memcpy(&word, bytes, sizeof word);
    return word;
}

}  // namespace plexus::wire

#endif
