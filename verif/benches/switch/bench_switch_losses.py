"""What a whole switch loses when a port goes: each flit is counted, by its cause, against what was sent."""

from typing import Any

import cocotb

from rtl.contract.link import NO_PROGRESS_FLITS, RETRAINS_WITHOUT_PROGRESS, LinkCause, LinkState, PacketOpcode
from rtl.contract.link_config import LinkConfig
from rtl.contract.switch_config import SwitchConfig
from rtl.contract.switch_registers import ResponderRegister, SwitchCause, SwitchRegister, SwitchSpace, port_address
from verif.agents.switch_ports import SwitchPorts
from verif.bench import Run
from verif.benches.switch.switch_traffic import FLITS, Traffic, begin, unit
from verif.checks.coverage import Coverage

_FOUR = SwitchConfig(name="four", ports=4, link=LinkConfig(classes=2, shared_flits=28))

RUNS = (
    Run("switch", config=_FOUR, faults=("what an output drops is not told", "what a retry buffer held is not told")),
)

_EVENTS = ["to itself", "response", "dead output", "restart", "taken out", "put back", "cut by a restart"]
_LOSSES = ["lost and told", "spoilt in a list", "waited in lists", "waited at a source", "in a retry buffer"]
COVER = Coverage("switch.losses", FLITS + _EVENTS + _LOSSES)

_RESPONDER_PARITY = SwitchSpace.RESPONDER + ResponderRegister.PARITY


async def _flits_told(traffic: Traffic) -> dict[str, int]:
    """Flits that somebody has told of, by cause: the whole switch, and for `unresolved` its partners too."""
    causes = (SwitchCause.DROPPED, SwitchCause.LATE, SwitchCause.BAD_FLITS)
    told = {cause.name.lower(): sum(await traffic.told(cause)) for cause in causes}
    here = sum(await traffic.told(LinkCause.UNRESOLVED))
    return told | {"unresolved": here + sum(p.counts[LinkCause.UNRESOLVED] for p in traffic.ports.partners)}


def _missing(traffic: Traffic, port: int) -> int:
    """Flits sent to and from a port that have not come out of the switch."""
    sent = sum(len(u) for (a, _, b), units in traffic.sent.items() if port in (a, b) for u in units)
    others = sum(len(u) for (a, _, b), units in traffic.got.items() if a == port != b for u in units)
    return sent - others - traffic.heard[port]


@cocotb.test(timeout_time=4000, timeout_unit="us")
async def a_port_is_taken_out_and_put_back(dut: Any) -> None:
    """Each one, by its register and its pin: units for it, of every queue, are dropped and counted, everything else
    arrives; afterwards so do units for it."""
    bench, ports, traffic = await begin(dut, COVER)
    count = ports.cfg.ports
    for n, gone in enumerate(int(p) for p in bench.rng.permutation(count)):
        before = sum(await traffic.told(SwitchCause.DROPPED))
        others = [p for p in range(count) if p != gone]
        await _take_out(ports, gone, pin=bool(n % 2))
        await _put_back(ports, gone)
        await _take_out(ports, gone, pin=not n % 2)
        COVER.hit("taken out")
        sent_to_it = 0
        for k in range(16 * len(others)):
            source = others[k % len(others)]
            if bench.rng.random() < 0.4:
                opcode = PacketOpcode.READ_RESPONSE if bench.rng.random() < 0.5 else PacketOpcode.WRITE
                sent_to_it += len(traffic.send(source, gone, opcode=opcode, at=gone))
                COVER.hit("dead output")
            else:
                traffic.send(source, int(bench.rng.choice(others)))
            await ports.run(int(bench.rng.integers(0, 12)))
        await traffic.drain()
        traffic.need(3, others)
        dropped = sum(await traffic.told(SwitchCause.DROPPED)) - before
        assert dropped == sent_to_it, f"{dropped} flits dropped, {sent_to_it} sent to port {gone}, which is out"
        await _put_back(ports, gone)
        COVER.hit("put back")
        for p in range(count):
            traffic.send(p, gone)
            traffic.send(gone, p)
        await traffic.drain()
        traffic.need(count, [gone])


async def _take_out(ports: SwitchPorts, gone: int, *, pin: bool) -> None:
    """One port; it alone says that it is out."""
    if pin:
        ports.dut.disabled.value = 1 << gone
    else:
        await ports.write(port_address(gone, SwitchRegister.CONTROL), 1)
    await ports.run(10 * ports.cfg.slot_cycles)
    for p in range(ports.cfg.ports):
        state = LinkState.DISABLED if p == gone else 1 << 8 | LinkState.UP
        told = await ports.read(port_address(p, SwitchRegister.STATE))
        assert told == state, f"port {gone} is taken out: the state of port {p} is {told:#x}, not {state:#x}"


async def _put_back(ports: SwitchPorts, gone: int) -> None:
    ports.dut.disabled.value = 0
    await ports.write(port_address(gone, SwitchRegister.CONTROL), 0)
    await ports.up()


@cocotb.test(timeout_time=4000, timeout_unit="us")
async def a_partner_begins_again(dut: Any) -> None:
    """What was on its way to or from it may be lost and is reported; everybody else loses nothing."""
    bench, ports, traffic = await begin(dut, COVER, damage=0.01)
    count = ports.cfg.ports
    before = await _flits_told(traffic)
    for _ in range(2):
        again = int(bench.rng.integers(count))
        for _ in range(20):
            for p in range(count):
                traffic.send(p, int(bench.rng.integers(count)))
            await ports.run(int(bench.rng.integers(1, 10)) * ports.cfg.slot_cycles)
        partner = ports.partners[again]
        never_sent = len(partner.waiting)
        partner.waiting.clear()
        ports.restart.add(again)
        COVER.hit("restart")
        await ports.run(20 * ports.cfg.slot_cycles)
        await ports.up()
        for _ in range(60):
            await ports.run(20 * ports.cfg.slot_cycles)
            traffic.collect()
        for key in set(traffic.sent) | set(traffic.got):
            source, _, to = key
            mine, theirs = traffic.sent[key], traffic.got[key]
            if again in (source, to):
                rest = iter(mine)
                assert all(u in rest for u in theirs), f"{source} to {to}: out of order or twice"
            else:
                assert mine == theirs, f"{source} to {to}: {len(mine)} units sent, {len(theirs)} came"
        after = await _flits_told(traffic)
        new = {name: after[name] - before[name] for name in after}
        before = after
        missing = _missing(traffic, again)
        sure = never_sent + sum(new.values()) - new["unresolved"]
        assert sure <= missing <= sure + new["unresolved"], (
            f"{missing} flits to and from port {again} did not come; {never_sent} were never sent, told: {new}"
        )
        COVER.when(bool(missing), "lost and told")
        traffic.need(5, set(range(count)) - {again})
        traffic.units[again].clear()
        traffic.sent.clear()
        traffic.got.clear()
        traffic.heard = [0] * count
    for n in range(20):
        traffic.send(int(bench.rng.integers(count)), n % count)
    await traffic.drain()
    traffic.need(5)
    assert all(p.state == LinkState.UP for p in ports.partners)


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def a_unit_cut_by_a_restart_is_counted(dut: Any) -> None:
    """Each of its flits that had come, at the input they came to."""
    bench, ports, traffic = await begin(dut, COVER)
    for source in range(ports.cfg.ports):
        flits: list[bytes] = []
        while len(flits) < 2:
            flits = unit(bench.rng, source, 0, source, classes=ports.cfg.link.classes, opcode=PacketOpcode.WRITE)
        partner = ports.partners[source]
        for flit in flits[:-1]:
            partner.send(flit)
        await ports.run(20 * ports.cfg.slot_cycles)
        ports.restart.add(source)
        COVER.hit("cut by a restart")
        await ports.run(20 * ports.cfg.slot_cycles)
        await ports.up()
        told = await ports.read(port_address(source, SwitchRegister.CAUSE) + 8 * SwitchCause.BAD_FLITS)
        assert told == len(flits) - 1, f"port {source} counts {told} flits cut off, not {len(flits) - 1}"
    traffic.send(0, 1)
    await traffic.drain()


async def _fill(traffic: Traffic, to: int, units: int) -> int:
    """Writes and responses from all other ports to one. Returns their flits."""
    others = [p for p in range(traffic.ports.cfg.ports) if p != to]
    opcodes = (PacketOpcode.WRITE, PacketOpcode.READ_RESPONSE)
    return sum(len(traffic.send(others[n % len(others)], to, opcode=opcodes[n // 4 % 2], at=to)) for n in range(units))


async def _everybody_hears(traffic: Traffic, each: int = 3) -> None:
    """Every port sends to every port, and all of it arrives."""
    count = traffic.ports.cfg.ports
    traffic.arrived = [0] * count
    for n in range(each * count * count):
        traffic.send(n % count, n // count % count)
    await traffic.drain()
    traffic.need(each * count)


async def _until_nothing_waits(traffic: Traffic) -> None:
    """At the sources, nor in lists: nobody tells of further losses."""
    ports = traffic.ports
    before = -1
    for _ in range(100):
        told = sum((await _flits_told(traffic)).values())
        if told == before and not any(partner.waiting for partner in ports.partners):
            return
        before = told
        await ports.run(60 * ports.cfg.slot_cycles)
    raise AssertionError("units for a port that is out neither leave nor are told of")


@cocotb.test(timeout_time=4000, timeout_unit="us")
async def what_waits_for_a_port_that_goes_is_counted(dut: Any) -> None:
    """A slow reader: its output has no credits, lists of all queues and sources fill up; then the port, each one in
    turn, is taken out. The responder takes what waited in lists, of every queue: bits that flipped there are told."""
    bench, ports, traffic = await begin(dut, COVER)
    for gone in (int(p) for p in bench.rng.permutation(ports.cfg.ports)):
        before, late_before = await _flits_told(traffic), await traffic.told(SwitchCause.LATE)
        partner = ports.partners[gone]
        partner.stall = True
        parity_before = await ports.read(_RESPONDER_PARITY)
        sent = await _fill(traffic, gone, 60)
        await ports.run(200 * ports.cfg.slot_cycles)
        assert not any(p.waiting for p in ports.partners), "lists are full before a bit flips"
        dut.flip.value = (1 << ports.cfg.ports) - 1
        spoilt = await _fill(traffic, gone, 180)
        await ports.run(500 * ports.cfg.slot_cycles)
        dut.flip.value = 0
        sent += spoilt
        came = len(partner.received)
        waits = sum(len(p.waiting) for p in ports.partners)
        assert await ports.read(port_address(gone, SwitchRegister.IN_FLIGHT)) == 0, "not everything is acknowledged"
        assert 0 < came < sent - waits, f"{came} flits came and {waits} wait at their sources, of {sent}"
        await ports.write(port_address(gone, SwitchRegister.CONTROL), 1)
        await _until_nothing_waits(traffic)
        told = {name: flits - before[name] for name, flits in (await _flits_told(traffic)).items()}
        late = (await traffic.told(SwitchCause.LATE))[gone] - late_before[gone]
        assert late == told["late"] and not told["bad_flits"] and not told["unresolved"], f"{late}, {told}"
        assert came + told["late"] + told["dropped"] == sent, f"{sent} flits sent, {came} came, told: {told}"
        assert len(partner.received) == came, "flits came out of a port that was taken out"
        parity = await ports.read(_RESPONDER_PARITY) - parity_before
        assert parity == spoilt - waits, f"{parity} flits with wrong parity, {spoilt - waits} waited in lists"
        COVER.when(parity > 0, "spoilt in a list")
        COVER.when(told["late"] > 0, "waited in lists")
        COVER.when(told["dropped"] > 0 and waits > 0, "waited at a source")
        partner.received.clear()
        partner.stall = False
        traffic.units[gone].clear()
        await ports.write(port_address(gone, SwitchRegister.CONTROL), 0)
        await ports.up()
        await _everybody_hears(traffic)


@cocotb.test(timeout_time=2000, timeout_unit="us")
async def what_a_retry_buffer_held_is_counted(dut: Any) -> None:
    """A partner that refuses every flit, and then begins again: nothing came, everything is told, once."""
    bench, ports, traffic = await begin(dut, COVER)
    gone = int(bench.rng.integers(ports.cfg.ports))
    ports.deaf.add(gone)
    sent = await _fill(traffic, gone, 8)
    await ports.run(80 * ports.cfg.slot_cycles)
    held = await ports.read(port_address(gone, SwitchRegister.IN_FLIGHT))
    assert held == sent and not ports.partners[gone].received, f"{held} flits in the retry buffer, {sent} sent"
    ports.deaf.clear()
    ports.restart.add(gone)
    await ports.run(20 * ports.cfg.slot_cycles)
    await ports.up()
    unresolved = await traffic.told(LinkCause.UNRESOLVED)
    expected = [sent if p == gone else 0 for p in range(ports.cfg.ports)]
    assert unresolved == expected, f"the ports tell of {unresolved} flits in retry buffers, not {expected}"
    told = await _flits_told(traffic)
    assert sum(told.values()) == sent, f"{sent} flits sent, none came, told: {told}"
    COVER.hit("in a retry buffer")
    await _everybody_hears(traffic)


@cocotb.test(timeout_time=2000, timeout_unit="us")
async def a_port_without_progress_begins_a_session(dut: Any) -> None:
    """Every partner refuses every flit: each port keeps its session as long as it must, and no longer."""
    bench, ports, traffic = await begin(dut, COVER)
    count = ports.cfg.ports
    ports.deaf = set(range(count))
    for p in range(count):
        traffic.send(p, p, opcode=PacketOpcode.WRITE, at=p)
    limit = NO_PROGRESS_FLITS * (RETRAINS_WITHOUT_PROGRESS + 1)
    await ports.run((limit - 100) * ports.cfg.slot_cycles)
    told = await traffic.told(LinkCause.DOWN)
    assert not any(told), f"sessions given up before {limit} flit times without progress, by port: {told}"
    await ports.run(200 * ports.cfg.slot_cycles)
    told = await traffic.told(LinkCause.DOWN)
    assert all(told), f"sessions given up after {limit} flit times without progress, by port: {told}"
    ports.deaf.clear()
    await ports.up()
    await _everybody_hears(traffic)


@cocotb.test()
async def everything_was_seen(dut: Any) -> None:
    COVER.require_all()
