"""All rules of one end of a link together: what to send next, what to accept, when the link is up. No data path."""

from amaranth.hdl import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.base.fault import fault
from rtl.base.layouts import layout
from rtl.contract.link import DLP, FLIT_HEADER, ControlKind, CreditKind, LinkCause, Usage
from rtl.contract.link_config import LinkConfig
from rtl.link.rules.credit_receiver import CreditReceiver
from rtl.link.rules.credit_sender import COUNT_BITS, CreditSender
from rtl.link.rules.progress import Progress
from rtl.link.rules.replay_receiver import ReplayReceiver
from rtl.link.rules.replay_sender import ReplaySender, buffer_slots
from rtl.link.rules.state import CONTROL_LAYOUT, LinkStates

__all__ = ["DLP_LAYOUT", "FLIT_HEADER_LAYOUT", "LinkRules"]

DLP_LAYOUT = layout(DLP)
FLIT_HEADER_LAYOUT = layout(FLIT_HEADER)


class LinkRules(wiring.Component):
    """Replay, credits and sessions of one end.

    Receive: `rx_valid` once a flit, with `rx_good`, its DLP and its first 16 bytes; `deliver` says, in the same cycle,
    that its payload is accepted into a slot of `rx_account`. A malformed flit is dropped whole. `pending`: a gap waits
    for its replay.
    Send: `slot` when a flit starts; what it is (`tx_payload`: slot `tx_index` of the retry buffer; else `tx_control`:
    a control flit that begins with `tx_head`; else a NOP) and its DLP hold in that cycle. `enqueue` after a payload
    flit was put into slot `put_index`, only with `room`; `spend` credits from `free`.
    `tick` once a flit time. `causes` by LinkCause; with `clear`, `unresolved` payload flits were in the retry buffer.
    Timing: `deliver`, `rx_account`, `causes`, `clear`, `unresolved` are combinational with the flit; the send side
    comes from registers and `may`.
    """

    def __init__(self, cfg: LinkConfig):
        self.cfg = cfg
        self.sender = ReplaySender(cfg)
        self.receiver = ReplayReceiver(cfg)
        self.spends = CreditSender(cfg)
        self.grants = CreditReceiver(cfg)
        self.progress = Progress()
        self.states = LinkStates(cfg)
        flags = ("tick", "disabled", "restart", "realign", "aligned", "rx_valid", "rx_good", "slot", "may", "enqueue")
        super().__init__(
            {
                **{name: In(1) for name in flags},
                "session_init": In(16),
                "rx_dlp": In(DLP_LAYOUT),
                "rx_head": In(128),
                "deliver": Out(1),
                "pending": Out(1),
                "rx_account": Out(range(cfg.accounts)),
                "freed": In(1),
                "freed_account": In(range(cfg.accounts)),
                "tx_payload": Out(1),
                "tx_index": Out(range(buffer_slots(cfg))),
                "tx_control": Out(1),
                "tx_head": Out(128),
                "tx_dlp": Out(DLP_LAYOUT),
                "room": Out(1),
                "put_index": Out(range(buffer_slots(cfg))),
                "free": Out(data.ArrayLayout(unsigned(COUNT_BITS), cfg.accounts)),
                "spend": In(1),
                "spend_account": In(range(cfg.accounts)),
                "state": Out(4),
                "up": Out(1),
                "align": Out(1),
                "session": Out(16),
                "partner": Out(16),
                "mismatch": Out(1),
                "clear": Out(1),
                "unresolved": Out(range(cfg.window_flits + 2)),
                "in_flight": Out(range(cfg.window_flits + 2)),
                "causes": Out(len(LinkCause)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        parts = (self.sender, self.receiver, self.spends, self.grants, self.progress, self.states)
        sender, receiver, spends, grants, progress, states = parts
        for name, part in zip(("sender", "receiver", "spends", "grants", "progress", "states"), parts):
            m.submodules[name] = part
        for part in parts[:-1]:
            m.d.comb += part.clear.eq(states.clear)
        malformed, overrun = self._receive(m), receiver.overrun
        self._send(m)

        m.d.comb += [
            progress.tick.eq(self.tick),
            progress.waits.eq(Cat(sender.in_flight != 0, receiver.pending)),
            progress.moves.eq(Cat(sender.moved, receiver.deliver)),
            states.stalled.eq(progress.stalled),
            states.give_up.eq(progress.give_up),
            states.overrun.eq(overrun),
            *(getattr(states, n).eq(getattr(self, n)) for n in ("tick", "disabled", "restart", "realign", "aligned")),
            states.session_init.eq(self.session_init),
            *(
                getattr(self, n).eq(getattr(states, n))
                for n in ("state", "up", "align", "session", "partner", "mismatch", "clear")
            ),
            self.unresolved.eq(Mux(states.clear, sender.left[: len(self.unresolved)], 0)),
            self.in_flight.eq(sender.in_flight[: len(self.in_flight)]),
        ]
        told = {
            LinkCause.REFUSED: self.rx_valid & ~self.rx_good,
            LinkCause.MALFORMED: malformed,
            LinkCause.DUPLICATE: receiver.duplicate,
            LinkCause.GAP: receiver.gap,
            LinkCause.REPLAY: sender.replay,
            LinkCause.BAD_ACK: sender.bad_ack,
            LinkCause.CREDIT_OVERRUN: overrun,
            LinkCause.BAD_CREDIT: spends.bad_credit,
            LinkCause.RETRAINED: states.retrained,
            LinkCause.DOWN: states.down,
            LinkCause.SPURIOUS: receiver.spurious,
        }
        m.d.comb += [self.causes[cause].eq(strobe) for cause, strobe in told.items()]
        return m

    def _receive(self, m: Module) -> Signal:
        """A flit of the partner to all who listen. Returns whether it is malformed."""
        cfg, dlp = self.cfg, self.rx_dlp
        header = data.View(FLIT_HEADER_LAYOUT, self.rx_head[:32])
        control = data.View(CONTROL_LAYOUT, self.rx_head)
        sender, receiver, spends, grants, states = self.sender, self.receiver, self.spends, self.grants, self.states
        is_payload, is_control = dlp.usage == Usage.PAYLOAD, dlp.usage == Usage.CONTROL
        bad_header, bad_control, bad, malformed, good = Signal(), Signal(), Signal(), Signal(), Signal()
        stray = Signal()  # its credits are told by VC, its place is freed by class
        kind = control.control_kind
        m.d.comb += [
            stray.eq((header.vc != header.class_) & ~fault("a flit on a VC that is not its class's is accepted")),
            bad_header.eq((header.zero != 0) | stray | (header.class_ >= cfg.classes)),
            bad_control.eq((kind != ControlKind.HANDSHAKE) & (kind != ControlKind.RETRAIN)),
            bad.eq(
                (dlp.usage == Usage.RESERVED)
                | ~dlp.one
                | (dlp.credit_kind > CreditKind.RESPONSE)
                | (is_payload & bad_header)
                | (is_control & bad_control)
            ),
            good.eq(self.rx_valid & self.rx_good & ~bad),
            malformed.eq(self.rx_valid & self.rx_good & bad),
            states.rx.eq(self.rx_valid & ~malformed),
            states.good.eq(good),
            states.is_control.eq(is_control),
            states.word.eq(control),
            sender.heard.eq(states.listen),
            sender.ack.eq(dlp.ack),
            sender.nak_id.eq(dlp.nak_id),
            receiver.good.eq(states.listen),
            receiver.is_payload.eq(is_payload),
            receiver.seq.eq(dlp.seq),
            receiver.epoch.eq(dlp.epoch),
            receiver.room.eq(grants.room),
            spends.update.eq(states.listen),
            spends.credit_kind.eq(dlp.credit_kind),
            spends.dedicated.eq(dlp.dedicated),
            spends.vc.eq(dlp.vc),
            spends.count.eq(dlp.count),
            grants.account.eq(Mux(header.dedicated, header.vc << 1, cfg.queues) + header.kind),
            grants.arrive.eq(receiver.deliver),
            grants.freed.eq(self.freed),
            grants.freed_account.eq(self.freed_account),
            self.deliver.eq(receiver.deliver),
            self.pending.eq(receiver.pending),
            self.rx_account.eq(grants.account),
        ]
        return malformed

    def _send(self, m: Module) -> None:
        """The flit that starts now, and credits to spend."""
        sender, receiver, spends, grants, states = self.sender, self.receiver, self.spends, self.grants, self.states
        prior = Signal()
        m.d.comb += [
            sender.slot.eq(self.slot),
            sender.may.eq(self.may & states.up),
            sender.enqueue.eq(self.enqueue),
            grants.slot.eq(self.slot),
            spends.spend.eq(self.spend),
            spends.spend_account.eq(self.spend_account),
            self.free.eq(spends.free),
            self.room.eq(sender.room & states.up),
            self.put_index.eq(sender.put_index),
            self.tx_payload.eq(sender.payload),
            self.tx_index.eq(sender.index),
            self.tx_control.eq(~states.up),
            self.tx_head.eq(states.send),
            self.tx_dlp.usage.eq(Mux(states.up, Mux(sender.payload, Usage.PAYLOAD, Usage.NOP), Usage.CONTROL)),
            self.tx_dlp.prior_payload.eq(prior),
            self.tx_dlp.one.eq(1),
            self.tx_dlp.epoch.eq(sender.epoch),
            self.tx_dlp.seq.eq(sender.seq),
            self.tx_dlp.nak_id.eq(receiver.nak_id),
            self.tx_dlp.credit_kind.eq(grants.credit_kind),
            self.tx_dlp.dedicated.eq(grants.dedicated),
            self.tx_dlp.vc.eq(grants.vc),
            self.tx_dlp.ack.eq(receiver.ack),
            self.tx_dlp.count.eq(grants.count),
        ]
        with m.If(self.slot):
            m.d.sync += prior.eq(sender.payload)
