"""Places of cores and the numbers that packets have for them."""

import re
from itertools import product

import pytest

from rtl.contract.config import ConfigError, load
from rtl.contract.endpoint_map import EndpointMap
from rtl.contract.fabric_config import ENDPOINT_MAPS
from rtl.contract.memmap import core_id, core_place


@pytest.mark.parametrize("bits", [*ENDPOINT_MAPS.values(), (0, 0, 0, 0), (4, 0, 4, 4), (0, 6, 3, 3), (2, 1, 0, 3)])
def test_places_and_numbers_are_one_to_one(bits: tuple[int, int, int, int]) -> None:
    """And racks are the highest bits, cores the lowest."""
    numbers = EndpointMap(bits)
    places = list(product(*(range(1 << width) for width in bits)))
    assert [numbers.encode(place) for place in places] == list(range(numbers.count))
    assert [numbers.decode(number) for number in range(numbers.count)] == places


def test_the_plain_map_is_the_low_bits() -> None:
    """What packets had before there was a map, of all places that they could tell apart."""
    plain = load("tiny").fabric.endpoint_map
    assert plain.bits == ENDPOINT_MAPS["plain"]
    for core in range(1 << 12):
        assert plain.encode(core_place(core)) == core
    assert not any(plain.has(core_place(core)) for core in range(1 << 12, 1 << 18))


def test_racks_of_144_chips_have_a_number_for_each_core() -> None:
    """Two racks of 18 servers of 4 chips of 8 cores; the plain map cannot tell them apart."""
    gen2, plain = load("tiny", ["fabric.endpoint_bits=gen2"]).fabric.endpoint_map, EndpointMap(ENDPOINT_MAPS["plain"])
    unit = list(product(range(2), range(18), range(4), range(8)))
    assert len({gen2.encode(place) for place in unit}) == len(unit) == 1152
    assert len({core_id(*place) & 0xFFF for place in unit}) < len(unit)
    assert not all(plain.has(place) for place in unit)


@pytest.mark.parametrize(
    ("bits", "place", "says"),
    [
        ("plain", (1, 0, 0, 0), "rack must be from 0 to 0 (fabric.endpoint_bits is 0:4:4:4), not 1"),
        ("plain", (0, 16, 0, 0), "server must be from 0 to 15 (fabric.endpoint_bits is 0:4:4:4), not 16"),
        ("gen1", (0, 0, 15, 8), "core must be from 0 to 7 (fabric.endpoint_bits is 1:2:4:3), not 8"),
        ("gen2", (1, 31, 4, 7), "chip must be from 0 to 3 (fabric.endpoint_bits is 1:5:2:3), not 4"),
        ("gen2", (-1, 0, 0, 0), "rack must be from 0 to 1 (fabric.endpoint_bits is 1:5:2:3), not -1"),
    ],
)
def test_a_place_without_a_number_is_told(bits: str, place: tuple[int, int, int, int], says: str) -> None:
    numbers = EndpointMap(ENDPOINT_MAPS[bits])
    assert not numbers.has(place)
    with pytest.raises(ValueError, match=re.escape(f"core {place} has no endpoint number: {says}")):
        numbers.encode(place)


def test_a_number_of_no_place_is_told() -> None:
    numbers = EndpointMap(ENDPOINT_MAPS["gen1"])
    for number in (-1, 1024):
        with pytest.raises(ValueError, match=f"from 0 to 1023 .fabric.endpoint_bits is 1:2:4:3., not {number}"):
            numbers.decode(number)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("gen3", "as in 8:4:2:1, plain, gen1, gen2, not 'gen3'"),
        ("0:4:4", "must be 4 numbers from 0 to 6, not 0, 4, 4"),
        ("0:0:5:0", "must have at most the 4 bits of chip in an address, not 5 (0:0:5:0)"),
        ("1:4:4:4", "must have at most 12 bits together, not 13 (1:4:4:4)"),
    ],
)
def test_maps_that_cannot_be(value: str, says: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(f"fabric.endpoint_bits {says}") if "as in" not in says else says):
        load("tiny", [f"fabric.endpoint_bits={value}"])


def test_a_map_is_chosen_by_name_or_by_widths(tmp_path) -> None:
    by_name = load("tiny", ["fabric.endpoint_bits=gen1"])
    assert by_name == load("tiny", ["fabric.endpoint_bits=1:2:4:3"])
    for value in ('"gen1"', "[1, 2, 4, 3]"):
        path = tmp_path / "tiny.toml"
        path.write_text(f'base = "tiny"\n[fabric]\nendpoint_bits = {value}\n')
        assert load(str(path)) == by_name
