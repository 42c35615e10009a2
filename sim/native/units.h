// Units of 1 to 4 flits with whole packets in them, whose bytes follow from who sent which one to whom.
//
// A unit is filled to its last word: one write, or two from three flits on (docs/framing.md). The payload of its first
// packet begins with the unit's number in its stream and a stamp of its sender; all other bytes are made of a seed.

#ifndef PLEXUS_UNITS_H
#define PLEXUS_UNITS_H

#include <vector>

#include "link_words.h"
#include "random.h"

namespace plexus {

struct Unit {
    unsigned source, destination;  // endpoints
    unsigned cls, kind, flits;
    uint64_t number;  // in its stream: source, destination, class, kind
    uint64_t stamp;
};

constexpr unsigned ROW_BYTES = wire::FLIT_PAYLOAD_BYTES - wire::FLIT_HEADER_BYTES;  // of a unit's row in a flit
constexpr unsigned SECOND_PACKET = wire::PACKET_HEADER_BYTES + wire::PACKET_BYTES_MAX;

// Payload bytes of packet `which` of a unit of that many flits.
inline unsigned packet_length(unsigned flits, unsigned which) {
    const unsigned left = ROW_BYTES * flits - wire::PACKET_HEADER_BYTES;
    if (flits < 3) return left;
    return which == 0 ? wire::PACKET_BYTES_MAX : left - SECOND_PACKET;
}

inline wire::Word packet_header(const Unit& u, unsigned which) {
    const uint64_t address = uint64_t(u.destination) << 44 | ((u.number * 1024 + which * 512) & 0xffffffffffull);
    return wire::PACKET_HEADER_opcode.with(u.kind ? wire::PacketOpcode_READ_RESPONSE : wire::PacketOpcode_WRITE) |
           wire::PACKET_HEADER_length_bytes.with(packet_length(u.flits, which)) |
           wire::PACKET_HEADER_tag.with(u.number << 2 | (u.flits - 1)) | wire::PACKET_HEADER_source.with(u.source) |
           wire::PACKET_HEADER_address.with(address);
}

inline uint64_t unit_key(const Unit& u, uint64_t seed) {
    const uint64_t who = uint64_t(u.source) << 32 | u.destination << 8 | u.cls << 1 | u.kind;
    return mixed(mixed(seed + who) + u.number);
}

// Flit `index` of a unit: flit header (pool bit 0) and words, 236 bytes.
inline void unit_flit(const Unit& u, uint64_t seed, unsigned index, uint8_t* out) {
    constexpr unsigned WORDS = ROW_BYTES / 8, SECOND = SECOND_PACKET / 8;
    const bool second = u.flits > 2 && index == SECOND / WORDS;
    const unsigned offset = index == 0 ? 0 : second ? (SECOND % WORDS) * 8 / wire::WORD_BYTES : wire::NO_HEADER;
    const uint32_t header = uint32_t(
        wire::FLIT_HEADER_offset.with(offset) | wire::FLIT_HEADER_tail.with(index == u.flits - 1) |
        wire::FLIT_HEADER_head.with(index == 0) | wire::FLIT_HEADER_kind.with(u.kind) |
        wire::FLIT_HEADER_vc.with(u.cls) | wire::FLIT_HEADER_class_.with(u.cls) |
        wire::FLIT_HEADER_endpoint.with(u.destination));
    std::memcpy(out, &header, sizeof header);
    uint8_t* row = out + wire::FLIT_HEADER_BYTES;
    const uint64_t key = unit_key(u, seed) + index * WORDS;
    for (unsigned w = 0; w < WORDS; w++) {
        const uint64_t word = mixed(key + w);
        std::memcpy(row + 8 * w, &word, 8);
    }
    if (index == 0) {
        const wire::Word first = packet_header(u, 0);
        std::memcpy(row, &first, sizeof first);
        std::memcpy(row + 16, &u.number, 8);
        std::memcpy(row + 24, &u.stamp, 8);
    } else if (second) {
        const wire::Word head = packet_header(u, 1);
        std::memcpy(row + 8 * (SECOND % WORDS), &head, sizeof head);
    }
}

// The unit that a head flit says it begins.
inline Unit unit_of(const uint8_t* flit) {
    const uint32_t header = wire::header_of(flit);
    const wire::Word packet = wire::word_of(flit + wire::FLIT_HEADER_BYTES);
    Unit u{};
    u.source = unsigned(wire::PACKET_HEADER_source.of(packet));
    u.destination = unsigned(wire::FLIT_HEADER_endpoint.of(header));
    u.cls = unsigned(wire::FLIT_HEADER_class_.of(header));
    u.kind = unsigned(wire::FLIT_HEADER_kind.of(header));
    u.flits = 1 + (wire::PACKET_HEADER_tag.of(packet) & 3);
    std::memcpy(&u.number, flit + wire::FLIT_HEADER_BYTES + 16, 8);
    std::memcpy(&u.stamp, flit + wire::FLIT_HEADER_BYTES + 24, 8);
    return u;
}

// Whether these are the 236 bytes of that flit; VC and pool are those of a hop.
inline bool same_flit(const Unit& u, uint64_t seed, unsigned index, const uint8_t* flit) {
    uint8_t expected[wire::FLIT_PAYLOAD_BYTES];
    unit_flit(u, seed, index, expected);
    const uint32_t hop = uint32_t(wire::FLIT_HEADER_vc.with(7) | wire::FLIT_HEADER_dedicated.with(1));
    return (wire::header_of(flit) & ~hop) == (wire::header_of(expected) & ~hop) &&
           !std::memcmp(flit + 4, expected + 4, ROW_BYTES);
}

// The packets in the row of a unit, with their headers; false if it is malformed.
inline bool packets_of(const std::vector<uint8_t>& row, std::vector<std::vector<uint8_t>>& packets) {
    for (size_t at = 0; at + wire::PACKET_HEADER_BYTES <= row.size();) {
        const wire::Word header = wire::word_of(row.data() + at);
        const unsigned opcode = unsigned(wire::PACKET_HEADER_opcode.of(header));
        if (header == 0 || opcode == wire::PacketOpcode_END) break;
        const bool carries = opcode == wire::PacketOpcode_WRITE || opcode == wire::PacketOpcode_ADD ||
                             opcode == wire::PacketOpcode_FETCH_ADD || opcode == wire::PacketOpcode_READ_RESPONSE;
        size_t bytes = wire::PACKET_HEADER_BYTES + (row[at] >> 4 & 1 ? 8u : 0u);
        if (carries) bytes += wire::PACKET_HEADER_length_bytes.of(header);
        if (at + bytes > row.size()) return false;
        packets.emplace_back(row.begin() + long(at), row.begin() + long(at + bytes));
        at += (bytes + wire::WORD_BYTES - 1) / wire::WORD_BYTES * wire::WORD_BYTES;
    }
    return true;
}

}  // namespace plexus

#endif
