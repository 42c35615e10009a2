// The rules of one end of a link: replay, credits, sessions, time-outs (docs/link-rules.md). No data path, no codec.
//
// The user calls `tick` at the start of each flit time of this end, then asks what goes on the wire (`send`), and calls
// `hear` for each flit that has come. There are no lanes, so ALIGN lasts one flit time.

#ifndef PLEXUS_LINK_END_H
#define PLEXUS_LINK_END_H

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "link_words.h"

namespace plexus {

// What both ends must agree on, from rtl.contract.link_config.LinkConfig.
struct LinkNumbers {
    unsigned lanes, spare_lanes, window, numbers, classes, shared;
};

class LinkEnd {
public:
    // A flit that starts: a payload flit out of slot `number` of the retry buffer, a control flit or a NOP.
    struct Sent {
        bool payload, control, again;
        unsigned number;
        uint64_t dlp;
        wire::Word control_word;
    };

    LinkEnd(const LinkNumbers& numbers, uint16_t session_before)
        : n_(numbers), session_(uint16_t(session_before + 1)), held_(2 * n_.classes + 2) {
        begin_session();
    }

    unsigned state() const { return state_; }
    bool up() const { return state_ == wire::LinkState_UP; }
    // ALIGN without lanes, and the states around it, put nothing on the wire and hear nothing.
    bool silent() const {
        return state_ == wire::LinkState_DOWN || state_ == wire::LinkState_ALIGN || state_ == wire::LinkState_DISABLED;
    }
    uint16_t session() const { return session_; }
    uint16_t partner() const { return partner_; }
    const LinkNumbers& numbers() const { return n_; }

    // Whether a new session began since this was asked last; `unresolved`: numbers that were in the retry buffer then.
    bool cleared() { return std::exchange(cleared_, false); }
    std::vector<unsigned> unresolved;

    // A flit time begins.
    void tick(bool restart = false, bool disable = false) {
        if (disable) {
            if (state_ != wire::LinkState_DISABLED) new_session(wire::LinkState_DISABLED);
            return;
        }
        if (state_ == wire::LinkState_DISABLED) return new_session(wire::LinkState_DOWN);
        if (state_ == wire::LinkState_DOWN) {
            state_ = wire::LinkState_ALIGN;
            return;
        }
        if (restart) return new_session(wire::LinkState_DOWN);
        if (state_ == wire::LinkState_ALIGN) {
            if (kept_) retrain(false);
            else state_ = wire::LinkState_HANDSHAKE;
        }
        watch();
    }

    // Sender.

    unsigned in_flight() const { return ahead(next_ - 1, acked_); }
    // A flit may enter the retry buffer; nothing old waits to go first.
    bool room() const { return up() && pos_ == next_ && in_flight() < n_.window; }
    // What the next payload flit gets as its number.
    unsigned next_number() const { return next_; }
    // A payload flit enters: its number.
    unsigned enqueue() {
        const unsigned number = next_;
        next_ = wrap(next_ + 1);
        return number;
    }
    unsigned credits(unsigned cls, unsigned kind) const { return free(account(cls, kind)) + free(shared(kind)); }
    // Charge a flit, to the shared account while it has any. True: to the dedicated one.
    bool spend(unsigned cls, unsigned kind) {
        const bool dedicated = free(shared(kind)) == 0;
        unsigned& used = used_[dedicated ? account(cls, kind) : shared(kind)];
        used = (used + 1) % wire::CREDIT_MODULUS;
        return dedicated;
    }

    // What the flit of this flit time is.
    Sent send() {
        Sent sent{};
        sent.control = !up();
        sent.payload = up() && pos_ != next_;
        sent.number = pos_;
        sent.again = sent.payload && pos_ != fresh_;
        const unsigned usage =
            sent.control ? wire::Usage_CONTROL : sent.payload ? wire::Usage_PAYLOAD : wire::Usage_NOP;
        const bool is_shared = turn_ >= 2 * n_.classes;
        sent.dlp = uint64_t(
            wire::DLP_usage.with(usage) | wire::DLP_prior_payload.with(prior_payload_) | wire::DLP_one.with(1) |
            wire::DLP_epoch.with(epoch_) | wire::DLP_seq.with(sent.payload ? pos_ : wrap(pos_ - 1)) |
            wire::DLP_nak_id.with(nak_id_) | wire::DLP_credit_kind.with(1 + turn_ % 2) |
            wire::DLP_dedicated.with(!is_shared) | wire::DLP_vc.with(is_shared ? 0 : turn_ / 2) |
            wire::DLP_count.with(count_[turn_]) | wire::DLP_ack.with(ack_));
        if (sent.control) sent.control_word = control_word();
        next_turn();
        prior_payload_ = sent.payload;
        if (sent.payload) {
            if (pos_ == fresh_) fresh_ = wrap(fresh_ + 1);
            pos_ = wrap(pos_ + 1);
        }
        return sent;
    }

    // Receiver.

    // A flit has come; null: one that was refused. True: it is payload, accepted, and holds a slot until `freed`.
    bool hear(const uint8_t* flit) {
        if (silent()) return false;
        if (!flit) {
            causes[wire::LinkCause_REFUSED]++;
            count_since();
            if (++refused_ == wire::REFUSED_IN_A_ROW) realign();
            return false;
        }
        const uint64_t dlp = wire::dlp_of(flit);
        const uint32_t header = wire::header_of(flit);
        const wire::Word word = wire::word_of(flit);
        if (malformed(dlp, header, word)) {
            causes[wire::LinkCause_MALFORMED]++;
            return false;
        }
        refused_ = 0;
        const unsigned usage = unsigned(wire::DLP_usage.of(dlp));
        const bool control = usage == wire::Usage_CONTROL;
        if (state_ == wire::LinkState_HANDSHAKE) {
            handshake(control, word);
            return false;
        }
        if (control && foreign(word)) {
            new_session(wire::LinkState_DOWN);
            return false;
        }
        hear_acknowledgement(unsigned(wire::DLP_ack.of(dlp)), unsigned(wire::DLP_nak_id.of(dlp)));
        hear_credit(dlp);
        const bool accepted = hear_number(dlp, usage == wire::Usage_PAYLOAD, header);
        if (state_ == wire::LinkState_UP && control && !wire::CONTROL_heard.of(word)) {
            retrain(true);
        } else if (state_ == wire::LinkState_RETRAIN) {
            if (control) heard_ = true;
            if (control ? wire::CONTROL_heard.of(word) != 0 : heard_) state_ = wire::LinkState_UP;
        }
        return accepted;
    }

    // The account that an accepted flit took its slot from.
    unsigned account_of(const uint8_t* flit) const {
        const uint32_t h = wire::header_of(flit);
        const unsigned kind = unsigned(wire::FLIT_HEADER_kind.of(h));
        return wire::FLIT_HEADER_dedicated.of(h) ? account(unsigned(wire::FLIT_HEADER_vc.of(h)), kind) : shared(kind);
    }
    void freed(unsigned account) {
        held_[account]--;
        count_[account] = (count_[account] + 1) % wire::CREDIT_MODULUS;
        changed_ |= 1u << account;
    }

    std::array<uint64_t, wire::CAUSES> causes{};

private:
    unsigned wrap(unsigned number) const { return number & (n_.numbers - 1); }
    unsigned ahead(unsigned number, unsigned of) const { return wrap(number - of); }
    unsigned account(unsigned cls, unsigned kind) const { return 2 * cls + kind; }
    unsigned shared(unsigned kind) const { return 2 * n_.classes + kind; }
    unsigned size(unsigned account) const { return account < 2 * n_.classes ? wire::DEDICATED_FLITS : n_.shared; }
    unsigned free(unsigned account) const { return (limit_[account] - used_[account]) % wire::CREDIT_MODULUS; }

    // Sessions and states.

    void new_session(unsigned state) {
        for (unsigned n = wrap(acked_ + 1); n != next_; n = wrap(n + 1)) unresolved.push_back(n);
        causes[wire::LinkCause_UNRESOLVED] += in_flight();
        if (state == wire::LinkState_DOWN) causes[wire::LinkCause_DOWN]++;
        state_ = state;
        session_++;
        cleared_ = true;
        begin_session();
    }

    void begin_session() {
        seen_ = complete_ = ready_ = kept_ = heard_ = false;
        since_ = refused_ = 0;
        next_ = pos_ = fresh_ = 1;
        acked_ = ack_ = epoch_ = nak_id_ = unlike_ = 0;
        pending_ = unanswered_ = moved_[0] = moved_[1] = false;
        ticks_[0] = ticks_[1] = tries_[0] = tries_[1] = 0;
        limit_.assign(held_.size(), 0);
        used_.assign(held_.size(), 0);
        count_.resize(held_.size());
        for (unsigned a = 0; a < held_.size(); a++) count_[a] = size(a) - held_[a];
        changed_ = turn_ = round_ = 0;
        favour_ = false;
    }

    void realign() {
        refused_ = 0;
        state_ = wire::LinkState_ALIGN;
    }

    void retrain(bool heard) {
        state_ = wire::LinkState_RETRAIN;
        heard_ = heard;
        causes[wire::LinkCause_RETRAINED]++;
    }

    wire::Word parameters() const {
        return wire::CONTROL_version.with(wire::VERSION) | wire::CONTROL_vcs.with(n_.classes) |
               wire::CONTROL_classes.with(n_.classes) | wire::CONTROL_window.with(n_.window) |
               wire::CONTROL_lanes.with(n_.lanes) | wire::CONTROL_spare_lanes.with(n_.spare_lanes);
    }
    static bool same_parameters(wire::Word a, wire::Word b) {
        for (const wire::Field& f : {wire::CONTROL_version, wire::CONTROL_vcs, wire::CONTROL_classes,
                                     wire::CONTROL_window, wire::CONTROL_lanes, wire::CONTROL_spare_lanes}) {
            if (f.of(a) != f.of(b)) return false;
        }
        return true;
    }
    wire::Word control_word() const {
        return parameters() |
               wire::CONTROL_control_kind.with(kept_ ? wire::ControlKind_RETRAIN : wire::ControlKind_HANDSHAKE) |
               wire::CONTROL_echo_valid.with(seen_) | wire::CONTROL_heard.with(kept_ ? heard_ : complete_) |
               wire::CONTROL_session.with(session_) | wire::CONTROL_echo.with(partner_);
    }
    bool foreign(wire::Word word) const {
        const bool retrains = wire::CONTROL_control_kind.of(word) == wire::ControlKind_RETRAIN;
        return wire::CONTROL_session.of(word) != partner_ || (retrains && wire::CONTROL_echo.of(word) != session_);
    }

    void count_since() {
        if (state_ == wire::LinkState_HANDSHAKE && seen_) since_ = std::min(since_ + 1, wire::REPEAT_FLITS + 1);
        to_up();
    }
    void to_up() {
        if (state_ != wire::LinkState_HANDSHAKE || !ready_ || since_ <= wire::REPEAT_FLITS) return;
        state_ = wire::LinkState_UP;
        kept_ = true;
    }
    void handshake(bool control, wire::Word word) {
        if (seen_) since_ = std::min(since_ + 1, wire::REPEAT_FLITS + 1);
        if (!control) {
            ready_ |= complete_;  // it is UP already
        } else {
            const uint16_t session = uint16_t(wire::CONTROL_session.of(word));
            if (!seen_ || session != partner_) {
                partner_ = session;
                seen_ = true;
                complete_ = ready_ = false;
                since_ = 0;
            }
            complete_ |= wire::CONTROL_echo_valid.of(word) && wire::CONTROL_echo.of(word) == session_ &&
                         same_parameters(word, parameters());
            ready_ |= complete_ && wire::CONTROL_heard.of(word);
        }
        to_up();
    }

    // Nothing waits for ever: 0 the sender's flits, 1 the receiver's gap.
    void watch() {
        const bool waits[2] = {in_flight() > 0, pending_};
        bool stalled = false, give_up = false;
        for (unsigned k = 0; k < 2; k++) {
            if (std::exchange(moved_[k], false) || !waits[k]) {
                ticks_[k] = tries_[k] = 0;
            } else if (++ticks_[k] == wire::NO_PROGRESS_FLITS) {
                ticks_[k] = 0;
                stalled = true;
                if (tries_[k] == wire::RETRAINS_WITHOUT_PROGRESS) give_up = true;
                else tries_[k]++;
            }
        }
        if (give_up) new_session(wire::LinkState_DOWN);
        else if (stalled && up()) retrain(false);
    }

    bool malformed(uint64_t dlp, uint32_t header, wire::Word word) const {
        const uint64_t usage = wire::DLP_usage.of(dlp);
        if (usage == wire::Usage_RESERVED || !wire::DLP_one.of(dlp)) return true;
        if (wire::DLP_credit_kind.of(dlp) > wire::CreditKind_RESPONSE) return true;
        if (usage == wire::Usage_PAYLOAD) {
            const uint64_t cls = wire::FLIT_HEADER_class_.of(header);
            return wire::FLIT_HEADER_zero.of(header) || wire::FLIT_HEADER_vc.of(header) != cls || cls >= n_.classes;
        }
        const uint64_t kind = wire::CONTROL_control_kind.of(word);
        return usage == wire::Usage_CONTROL && kind != wire::ControlKind_HANDSHAKE && kind != wire::ControlKind_RETRAIN;
    }

    // Replay: acked_ is known to be accepted, pos_ goes next, fresh_ was never sent, next_ is what a new flit gets.

    void hear_acknowledgement(unsigned ack, unsigned nak_id) {
        const unsigned gained = ahead(wrap(ack), acked_);
        if (gained && gained <= ahead(fresh_ - 1, acked_)) {
            if (gained > ahead(pos_ - 1, acked_)) pos_ = wrap(ack + 1);
            acked_ = wrap(ack);
            moved_[0] = true;
        } else if (gained && gained < n_.numbers / 2) {
            causes[wire::LinkCause_BAD_ACK]++;
        }
        const unsigned naks = (nak_id - epoch_) % 4;
        const bool obeyed = naks == 1 || (naks && unlike_ == wire::REPEAT_FLITS);
        if (obeyed) {
            epoch_ = nak_id;
            pos_ = wrap(acked_ + 1);
            causes[wire::LinkCause_REPLAY]++;
        }
        unlike_ = naks && !obeyed ? unlike_ + 1 : 0;
    }

    void hear_credit(uint64_t dlp) {
        const unsigned kind = unsigned(wire::DLP_credit_kind.of(dlp));
        if (kind == wire::CreditKind_NONE) return;
        const unsigned vc = unsigned(wire::DLP_vc.of(dlp));
        const bool dedicated = wire::DLP_dedicated.of(dlp);
        const unsigned count = unsigned(wire::DLP_count.of(dlp));
        const unsigned a = dedicated ? account(vc, kind - 1) : shared(kind - 1);
        const bool exists = !dedicated || vc < n_.classes;
        const unsigned gained = exists ? (count - limit_[a]) % wire::CREDIT_MODULUS : 0;
        if (gained >= wire::CREDIT_MODULUS - 256) return;  // a repeat of an old flit
        if (!exists || gained >= wire::CREDIT_MODULUS / 2 ||
            (count - used_[a]) % wire::CREDIT_MODULUS >= wire::CREDIT_MODULUS / 2) {
            causes[wire::LinkCause_BAD_CREDIT]++;
            return;
        }
        limit_[a] = count;
    }

    bool hear_number(uint64_t dlp, bool payload, uint32_t header) {
        const unsigned seq = unsigned(wire::DLP_seq.of(dlp)), epoch = unsigned(wire::DLP_epoch.of(dlp));
        const unsigned beyond = ahead(wrap(seq), ack_ + payload);
        const bool first_of_replay = payload && epoch == nak_id_ && unanswered_;
        if (first_of_replay) unanswered_ = false;
        if (payload && beyond == 0) {
            const unsigned kind = unsigned(wire::FLIT_HEADER_kind.of(header));
            const unsigned a = wire::FLIT_HEADER_dedicated.of(header)
                                   ? account(unsigned(wire::FLIT_HEADER_vc.of(header)), kind)
                                   : shared(kind);
            if (held_[a] == size(a)) {
                causes[wire::LinkCause_CREDIT_OVERRUN]++;
                new_session(wire::LinkState_DOWN);
                return false;
            }
            held_[a]++;
            ack_ = wrap(seq);
            pending_ = false;
            moved_[1] = true;
            return true;
        }
        if (beyond && beyond < n_.numbers / 2) {
            if (epoch == nak_id_) {
                nak_id_ = (nak_id_ + 1) % 4;
                pending_ = unanswered_ = true;
                causes[wire::LinkCause_GAP]++;
            }
        } else if (payload) {
            causes[wire::LinkCause_DUPLICATE]++;
            causes[wire::LinkCause_SPURIOUS] += first_of_replay;
        }
        return false;
    }

    // Told next is an account that has changed, but every second flit goes round all of them.
    void next_turn() {
        const unsigned accounts = unsigned(held_.size());
        changed_ &= ~(1u << turn_);
        if (changed_ && !favour_) {
            const unsigned later = changed_ & ~((2u << turn_) - 1);
            turn_ = unsigned(__builtin_ctz(later ? later : changed_));
            favour_ = true;
        } else {
            turn_ = round_ = (round_ + 1) % accounts;
            favour_ = false;
        }
    }

    LinkNumbers n_;
    unsigned state_ = wire::LinkState_DOWN;
    uint16_t session_, partner_ = 0;
    bool cleared_ = false;
    bool seen_, complete_, ready_, kept_, heard_;
    unsigned since_, refused_;
    unsigned next_, acked_, pos_, fresh_, epoch_, unlike_;
    unsigned ack_, nak_id_;
    bool pending_, unanswered_, prior_payload_ = false;
    bool moved_[2];
    unsigned ticks_[2], tries_[2];
    std::vector<unsigned> held_;  // slots by account; what the old session holds stays held in the next one
    std::vector<unsigned> limit_, used_, count_;
    unsigned changed_, turn_, round_;
    bool favour_;
};

}  // namespace plexus

#endif
