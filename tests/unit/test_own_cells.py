"""Mutants of a unit are drawn from its own cells: inner units that are measured themselves are left out."""

from verif.mutants.own import own_cells, own_files

NETLIST = """module \\top
  attribute \\src "rtl/issue/issue.py:12"
  cell $add $3
    connect \\A \\x
  end
  cell $mux $procmux$4
  end
  attribute \\src "rtl/issue/check.py:7|rtl/issue/pattern.py:9"
  cell $and $flatten\\check.$5
  end
  attribute \\keep 1
  attribute \\src "rtl/base/fifo.py:7"
  cell $or $flatten\\check.\\kept.$6
  end
  cell plexus_ram \\check.ram
  end
end
"""


def test_cells_are_of_instances_with_a_line_of_the_files() -> None:
    assert sorted(own_cells(NETLIST, {"rtl/issue/issue.py"})) == ["$3", "$procmux$4"]
    assert sorted(own_cells(NETLIST, {"rtl/issue/pattern.py"})) == ["$flatten\\check.$5", "\\check.ram"]
    assert own_cells(NETLIST, {"rtl/base/fifo.py"}) == ["$flatten\\check.\\kept.$6"]


def test_none_means_all() -> None:
    assert own_cells(NETLIST, {"rtl/tensor/pe.py"}) == []
    assert own_cells(NETLIST, {"rtl/issue/issue.py", "rtl/issue/check.py", "rtl/base/fifo.py"}) == []


def test_files_of_inner_units_are_theirs() -> None:
    own = own_files(("issue", "check", "fetch", "fifo"))
    assert "rtl/issue/issue.py" in own["issue"]
    assert not {"rtl/issue/check.py", "rtl/issue/fetch.py", "rtl/base/fifo.py"} & own["issue"]
    assert {"rtl/issue/check.py", "rtl/issue/pattern.py"} <= own["check"]
    assert "rtl/base/fifo.py" in own["fifo"]


def test_a_unit_is_inner_without_its_wrapping_too() -> None:
    names, inside = ("activation", "scalar_engine"), "rtl/numeric/functions/activation.py"
    assert inside in own_files(names)["scalar_engine"]
    own = own_files(names, {"activation": (inside,)})
    assert inside in own["activation"] and inside not in own["scalar_engine"]
    assert "rtl/scalar/lane.py" in own["scalar_engine"]


def test_frames_are_nobodys() -> None:
    assert "rtl/base/placed.py" not in own_files(("sbuf",))["sbuf"]
