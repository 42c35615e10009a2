"""Responder: each READ and FETCH_ADD that comes whole is answered once, with an error, to who asked; nothing else."""

import cocotb

from rtl.contract.link_config import LinkConfig
from rtl.contract.switch_config import SwitchConfig
from verif.agents.bench import manifest
from verif.bench import Run, noticed_by
from verif.benches.switch.responder_driver import COVER, ResponderBench

_TIGHT, _TIGHT_WIDE = (LinkConfig(classes=2, shared_flits=8, lanes=lanes) for lanes in (8, 16))

_PLANTED = (
    "a FETCH_ADD is not answered",
    "an answer comes from who asked",
    "units of outputs that are not dead are asked for",
    "what is granted to another output is taken too",
    "beats of other units are taken while no unit comes",
    "an answer is of the lowest class",
    "dead outputs have no turn",
    *noticed_by(
        "who_asks_is_answered_once/load=0.01/row=0.02/spoil=0.4",
        "parity of what is answered is ignored",
        "a wrong byte in a beat of what is answered that is not the last is forgotten",
        "a unit that is dropped goes on with the next one",
        "DLP and codes have parity too",
        "what is dropped keeps its room",
    ),
    *noticed_by(
        "who_asks_is_answered_once/load=0.2/row=0.02/spoil=0.0",
        "a unit is offered though there is no room for it",
    ),
)

RUNS = (
    Run("switch_responder", config=SwitchConfig(ports=4, link=_TIGHT), faults=_PLANTED, slow=True),
    Run("switch_responder", config=SwitchConfig(ports=4, link=_TIGHT_WIDE), slow=True, regress=True),
)


@cocotb.test(timeout_time=400, timeout_unit="us")
@cocotb.parametrize(load=[0.01, 0.2], row=[0.02, 0.8], spoil=[0.0, 0.4])
async def who_asks_is_answered_once(dut, load: float, row: float, spoil: float) -> None:
    bench = ResponderBench(dut, load, row, spoil)
    await bench.begin()
    for _ in range(5000 if spoil else 3000):
        await bench.cycle()
    await bench.drain()
    assert bench.answered > 10, f"only {bench.answered} answers"


@cocotb.test(timeout_time=100, timeout_unit="us")
async def dead_outputs_are_emptied_in_turn(dut) -> None:
    """With units in all columns and more in its own, none waits for ever."""
    bench = ResponderBench(dut, 0, 1, 0)
    await bench.begin()
    bench.dead = (1 << bench.n - 1) - 1
    bench.looked_dead = bench.dead
    for column in bench.waiting:
        while len(column) < 30:
            column.extend(bench.make_units())
    before = [len(column) for column in bench.waiting]
    for _ in range(100 * bench.cfg.slot_cycles):
        bench.dead = (1 << bench.n - 1) - 1
        await bench.cycle()
    ours = [b - len(column) for b, column in zip(before, bench.waiting, strict=True)]
    assert min(ours) >= 1 and max(ours) - min(ours) <= 2, f"units taken by column: {ours}"


@cocotb.test()
async def covered(dut) -> None:
    assert manifest().config.link.pool_flits < 64
    COVER.require_all()
