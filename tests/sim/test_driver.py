"""The native driver: HBM timing, bandwidth, order, strobes, errors, and how runs end."""

import dataclasses
from collections.abc import Iterator

import numpy as np
import pytest

from rtl.contract.config import Config, named
from sim.build import build
from sim.native.library import DRIVER_SOURCES, NativeCore, Reason
from verif.benches.native.standin import GO, REGISTERS, STRIDE, VIOLATIONS

TINY = named("tiny")
TWO_PORTS = dataclasses.replace(
    TINY, hbm=dataclasses.replace(TINY.hbm, ports=2, port_bytes=16, bytes_per_cycle=24, latency_ns=20)
)


@pytest.fixture(params=[TINY, TWO_PORTS], ids=["one_port", "two_ports"])
def cfg(request: pytest.FixtureRequest) -> Config:
    return request.param


@pytest.fixture
def core(cfg: Config) -> Iterator[NativeCore]:
    built = build("standin", cfg, kind="native", extra_cpp=DRIVER_SOURCES)
    with NativeCore(built.binary, cfg) as core:
        core.reset()
        yield core


def setup(core: NativeCore, port: int = 0, **registers: int) -> None:
    for name, value in registers.items():
        core.host_write(port * STRIDE + REGISTERS[name], value)


def value(core: NativeCore, name: str, port: int = 0) -> int:
    return core.host_read(port * STRIDE + REGISTERS[name])


def run(core: NativeCore, limit: int = 100_000) -> Reason:
    core.host_write(GO, 1)
    return core.run(limit, quiet_cycles=5000, milliseconds=60_000)


def test_read_latency(core: NativeCore, cfg: Config) -> None:
    setup(core, read_address=4096, read_bursts=1, read_beats=1)
    assert run(core) == Reason.DONE
    assert value(core, "first_r") - value(core, "first_ar") == cfg.latency_cycles


def test_write_latency(core: NativeCore, cfg: Config) -> None:
    setup(core, write_address=4096, write_bursts=1, write_beats=4, strobe=2**64 - 1)
    assert run(core) == Reason.DONE
    assert value(core, "first_b") - value(core, "last_w") >= cfg.latency_cycles
    assert value(core, "first_b") - value(core, "last_w") <= cfg.latency_cycles + 4


def test_reads_keep_order_and_echo_ids(core: NativeCore, cfg: Config) -> None:
    beats, bursts, at = 8, 20, 8192
    count = beats * bursts * cfg.hbm.port_bytes
    data = np.random.default_rng(1).integers(0, 256, count, dtype=np.uint8)
    core.load(at, data)
    setup(core, read_address=at, read_bursts=bursts, read_beats=beats)
    assert run(core) == Reason.DONE
    expected = 0
    for word in data.view(np.uint64).reshape(-1, cfg.hbm.port_bytes // 8)[:, 0]:
        expected = (expected * 5 + int(word)) % 2**64
    assert value(core, "hash") == expected
    assert value(core, "responses") == 0
    assert core.hbm_counters().read_beats == beats * bursts


@pytest.mark.parametrize("directions", [("read",), ("write",), ("read", "write")])
def test_bandwidth_is_shared_and_used(core: NativeCore, cfg: Config, directions: tuple[str, ...]) -> None:
    beats, bursts = 8, 100
    for port in range(cfg.hbm.ports):
        for way in directions:
            setup(
                core,
                port,
                **{f"{way}_address": (1 + port) << 20, f"{way}_bursts": bursts, f"{way}_beats": beats},
            )
        setup(core, port, strobe=2**64 - 1)
    assert run(core) == Reason.DONE
    ports = range(cfg.hbm.ports)
    stamps = []
    if "read" in directions:
        stamps += [("first_r", "last_r")]
    if "write" in directions:
        stamps += [("first_aw", "last_b")]
    begin = min(value(core, first, p) for first, _ in stamps for p in ports)
    end = max(value(core, last, p) for _, last in stamps for p in ports)
    moved = beats * bursts * cfg.hbm.port_bytes * cfg.hbm.ports * len(directions)
    possible = min(cfg.hbm.bytes_per_cycle, cfg.hbm.port_bytes * cfg.hbm.ports * len(directions))
    assert moved / possible <= end - begin + 1 <= moved / possible + 2 * cfg.latency_cycles + 32


def test_both_ports_get_their_share(core: NativeCore, cfg: Config) -> None:
    for port in range(cfg.hbm.ports):
        setup(core, port, read_address=port << 20, read_bursts=100, read_beats=8)
    assert run(core) == Reason.DONE
    ends = [value(core, "last_r", p) for p in range(cfg.hbm.ports)]
    assert max(ends) - min(ends) <= 4


def test_urgent_reads_pass_those_that_wait(core: NativeCore, cfg: Config) -> None:
    """One burst of 50 of each port, behind others that the bandwidth lets wait: as late as alone, but for a beat of
    another that is on the pins and urgent ones of other ports."""
    for port in range(cfg.hbm.ports):
        setup(core, port, read_address=port << 20, read_bursts=100, read_beats=8, urgent=50)
        setup(core, port, write_address=(2 + port) << 20, write_bursts=100, write_beats=8)
    assert run(core) == Reason.DONE
    for port in range(cfg.hbm.ports):
        assert value(core, "responses", port) == 0
        assert cfg.latency_cycles <= value(core, "urgent_r", port) <= cfg.latency_cycles + 1 + cfg.hbm.ports
    assert core.hbm_counters().read_beats == 800 * cfg.hbm.ports


def test_all_urgent_are_as_all_that_are_not(cfg: Config) -> None:
    """Every burst urgent: turns, rates and end of a run in which none is; and ids keep their order."""
    built = build("standin", cfg, kind="native", extra_cpp=DRIVER_SOURCES)
    ends = []
    for urgent in (0, 1):
        with NativeCore(built.binary, cfg) as core:
            core.reset()
            setup(core, read_bursts=60, read_beats=8, urgent=urgent)
            setup(core, write_address=1 << 20, write_bursts=60, write_beats=8, urgent_writes=urgent)
            assert run(core) == Reason.DONE
            ends.append([value(core, name) for name in ("hash", "last_r", "last_b", "responses")])
    assert ends[0][:3] == ends[1][:3]


def test_urgent_writes_go_before_reads_that_wait(cfg: Config) -> None:
    """Reads want all bandwidth; the same writes end earlier if they are urgent."""
    ends = []
    for urgent in (0, 1):
        built = build("standin", cfg, kind="native", extra_cpp=DRIVER_SOURCES)
        with NativeCore(built.binary, cfg) as core:
            core.reset()
            for port in range(cfg.hbm.ports):
                setup(core, port, read_address=port << 20, read_bursts=200, read_beats=8)
                setup(core, port, write_address=(2 + port) << 20, write_bursts=50, write_beats=8)
                setup(core, port, urgent_writes=urgent)
            assert run(core) == Reason.DONE
            ends.append(max(value(core, "last_b", port) for port in range(cfg.hbm.ports)))
    assert ends[1] < 0.8 * ends[0]


def test_strobes(core: NativeCore, cfg: Config) -> None:
    at, beats = 4096, 4
    width = cfg.hbm.port_bytes
    strobe = 0x8F0F_F1A5_8F0F_F1A5 & ((1 << min(width, 64)) - 1)
    old = np.full(beats * width, 0xEE, np.uint8)
    core.load(at, old)
    setup(core, write_address=at, write_bursts=1, write_beats=beats, strobe=strobe)
    assert run(core) == Reason.DONE
    lanes = np.arange(beats)[:, None] + np.arange(width // 8)[None, :]
    new = lanes.astype(np.uint64).view(np.uint8).reshape(beats, width)
    keep = np.array([strobe >> (b % 64) & 1 for b in range(width)], bool)
    expected = np.where(keep[None, :], new, 0xEE)
    assert np.array_equal(core.read(at, beats * width).reshape(beats, width), expected)
    assert core.hbm_counters().written_bytes == beats * int(keep.sum())


def test_decode_error_beyond_capacity(core: NativeCore, cfg: Config) -> None:
    end = cfg.hbm.capacity_mib << 20
    setup(core, read_address=end, read_bursts=1, read_beats=2)
    setup(core, write_address=end, write_bursts=1, write_beats=2, strobe=2**64 - 1)
    assert run(core) == Reason.DONE
    assert value(core, "responses") == 0b1111


@pytest.mark.parametrize(("violation", "says"), [("wlast", "last beat"), ("size", "width of the port")])
def test_protocol_violations_are_named(core: NativeCore, violation: str, says: str) -> None:
    setup(core, write_address=0, write_bursts=2, write_beats=4, violation=VIOLATIONS[violation])
    assert run(core) == Reason.PROTOCOL
    assert says in core.message


def test_burst_across_4_kib_is_a_violation(core: NativeCore, cfg: Config) -> None:
    setup(core, read_address=4096 - cfg.hbm.port_bytes, read_bursts=1, read_beats=2)
    assert run(core) == Reason.PROTOCOL
    assert "4 KiB" in core.message


def test_ends(core: NativeCore) -> None:
    core.host_write(GO, 1 << 9)
    assert core.run(100, milliseconds=60_000) == Reason.LIMIT
    assert core.run(1_000_000, quiet_cycles=1000, milliseconds=60_000) == Reason.STUCK
    assert core.run(1 << 60, milliseconds=20) == Reason.TIME
    assert core.seconds >= 0.02


def test_fault_ends_a_run_and_is_logged(core: NativeCore) -> None:
    core.host_write(GO, 1 << 8)
    assert core.run(100_000, quiet_cycles=50_000, milliseconds=60_000) == Reason.FAULT
    log = core.retire_log()
    assert [(r["queue"], r["sequence"], r["cause"]) for r in log] == [(0, 7, 3)]


def test_same_run_twice(cfg: Config) -> None:
    built = build("standin", cfg, kind="native", extra_cpp=DRIVER_SOURCES)
    ends = []
    for _ in range(2):
        with NativeCore(built.binary, cfg) as core:
            core.reset()
            setup(core, read_bursts=50, read_beats=8, write_bursts=50, write_beats=4, write_address=1 << 20)
            assert run(core) == Reason.DONE
            ends.append((core.cycle, core.hbm_counters()))
    assert ends[0] == ends[1]
