"""PacketMerge: which packet begins, that it stays whole, that nothing is lost, under random room and stalls."""

from typing import Any

import cocotb
from cocotb.triggers import ReadOnly, RisingEdge

from rtl.contract.link_config import LinkConfig
from rtl.link.beat import packet_layout
from verif.agents.bench import Bench
from verif.agents.opened import opened
from verif.agents.stall import STYLES, styled
from verif.agents.stream import StreamSource
from verif.bench import EVERY, Run
from verif.checks.coverage import Coverage

_ONE_CLASS = LinkConfig(name="one", classes=1)

RUNS = (
    Run("packet_merge", config="x8", faults=EVERY),
    Run("packet_merge", config=_ONE_CLASS, planted=False, seeds=(1,)),
)

_BINS = ["response passes", "both could", "none could", "waits at its first beat", "one beat", "response waits"]
_BINS += ["every bit was 0 and 1"]
COVER = Coverage("port.packet_merge", _BINS)
KINDS = ("request", "response")
PACKETS = 400


def _packet(rng: Any, cfg: LinkConfig, number: int, kind: int) -> list[int]:
    """Beats of random bits, so that every bit is seen as 0 and as 1; the lowest say which packet and beat it is."""
    beats = int(rng.integers(1, 10)) if rng.random() < 0.7 else 1
    class_ = int(rng.integers(cfg.classes))
    fields = {"class_": class_, "endpoint": int(rng.integers(4096))}
    words = []
    for n in range(beats):
        noise = int.from_bytes(rng.bytes(cfg.beat_bytes), "little")
        payload = noise >> 32 << 32 | number << 16 | n << 8 | kind
        beat = packet_layout(cfg).const({"first": n == 0, "last": n == beats - 1, "data": payload, **fields})
        words.append(beat.as_bits())
    return words


@cocotb.test(timeout_time=400, timeout_unit="us")
async def joins_requests_and_responses(dut: Any) -> None:
    bench = Bench(dut)
    rng, classes, layout = bench.rng, bench.cfg.classes, packet_layout(bench.cfg)
    beat_of = opened(layout)
    dut.room.value = 0
    dut.o__ready.value = 0
    sources = [StreamSource(bench, kind, styled(str(rng.choice(STYLES)), rng)) for kind in KINDS]
    await bench.start()
    sent: list[list[int]] = []
    for kind, source in enumerate(sources):
        words = [w for n in range(PACKETS) for w in _packet(rng, bench.cfg, n, kind)]
        sent.append(words)
        source.send(words)
    came: list[list[int]] = [[], []]
    under_way: int | None = None  # the kind of the packet that was offered and has not ended
    for cycle in range(60_000):
        often = (0.1, 0.5, 0.95)[cycle // 300 % 3]
        room = sum(1 << q for q in range(2 * classes) if rng.random() < often)
        ready = bool(rng.random() < 0.7)
        dut.room.value = room
        dut.o__ready.value = int(ready)
        await ReadOnly()
        valid = dut.o__valid.value == 1
        offers: list[int | None] = []
        for kind in KINDS:
            there = getattr(dut, f"{kind}__valid").value == 1
            offers.append(int(getattr(dut, f"{kind}__payload").value) if there else None)
        could = [o is not None and bool(room >> (beat_of(o).class_ * 2 + k) & 1)
                 for k, o in enumerate(offers)]  # fmt: skip
        if under_way is None:
            want = 1 if could[1] else 0 if could[0] else None
            COVER.when(could[1] and offers[0] is not None and not could[0], "response passes")
            COVER.when(all(could), "both could")
            COVER.when(want is None and None not in offers, "none could")
        else:
            want = under_way if offers[under_way] is not None else None
            COVER.when(under_way == 0 and could[1], "response waits")
        assert valid == (want is not None), f"cycle {cycle}: offers {valid}, could {could}, under way {under_way}"
        if want is not None:
            word = int(dut.o__payload.value)
            assert word == offers[want], f"cycle {cycle}: not the beat of the {KINDS[want]}"
            beat = beat_of(word)
            COVER.when(bool(beat.first and not ready), "waits at its first beat")
            COVER.when(bool(beat.first and beat.last), "one beat")
            if ready:
                came[want].append(word)
            under_way = None if ready and beat.last else want
        readies = [getattr(dut, f"{kind}__ready").value == 1 for kind in KINDS]
        taken = [r and o is not None for r, o in zip(readies, offers, strict=True)]
        assert taken == [ready and want == k for k in range(2)], f"cycle {cycle}: {taken} taken"
        await RisingEdge(bench.clk)
        if all(len(c) == len(s) for c, s in zip(came, sent, strict=True)):
            break
    assert came == sent
    counted = layout.as_shape().width
    for words in sent:
        ones, zeros = 0, 0
        for word in words:
            ones, zeros = ones | word, zeros | ~word
        driven = ones & zeros & (1 << counted) - 1
        fixed = {layout[n].offset + k for n, wide in (("class_", 3), ("data", 32)) for k in range(wide)}
        missing = [b for b in range(counted) if not driven >> b & 1 and b not in fixed]
        assert not missing, f"bits {missing[:8]} of a beat were not driven both ways"
    COVER.hit("every bit was 0 and 1")
    COVER.require_all()
