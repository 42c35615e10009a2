"""Plants of parts: asking for a fault of a part says what its renumbered plant would."""

from amaranth.hdl import Module, Signal, Value, ValueLike
from amaranth.sim import Simulator, SimulatorContext

from rtl.base.plant import passed_on, planted

CHAINS = (
    ((3, 1, 0, 7),),
    ((3, 1, 0, 7), (4, 2, 3, 1)),
    ((5, 5, 2),),
    ((9, 8, 7, 6, 5, 4, 3, 2, 1), (0, 9, 1, 12), (3, 2)),
)


def nested(plant: ValueLike, chain: tuple[tuple[int, ...], ...]) -> ValueLike:
    for numbers in chain:
        plant = passed_on(plant, *numbers)
    return plant


def test_fault_of_a_part_is_the_fault_that_its_plant_says() -> None:
    m = Module()
    plant = Signal(8)
    pairs: list[tuple[Signal, Signal]] = []
    for chain in CHAINS:
        part = nested(plant, chain)
        for number in range(1, 13):
            asked, valued = Signal(), Signal()
            m.d.comb += [asked.eq(planted(part, number)), valued.eq(Value.cast(part) == number)]
            pairs.append((asked, valued))

    async def testbench(ctx: SimulatorContext) -> None:
        active = 0
        for value in range(16):
            ctx.set(plant, value)
            for asked, valued in pairs:
                assert ctx.get(asked) == ctx.get(valued)
                active += ctx.get(asked)
        assert active == 10  # 3, 3, 2 and 2 faults that the whole offers

    simulator = Simulator(m)
    simulator.add_testbench(testbench)
    simulator.run()


def test_product_has_no_plant() -> None:
    assert passed_on(0, 1, 2) == 0
    assert passed_on(2, 1, 2) == 2
    assert passed_on(5, 1, 2) == 0


def test_fault_of_a_part_is_one_comparison() -> None:
    plant = Signal(8)
    asked = planted(nested(plant, CHAINS[3]), 1)
    assert repr(asked) == repr(planted(plant, 9))
