"""What a call gives back: arrays, the report, cycles."""

import io
import json
from collections.abc import Iterator, KeysView, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from rich.console import Console, Group, RenderableType
from rich.text import Text

from sim.api.tensor import Tensor
from sim.errors import PlexusError
from sim.report import terminal

__all__ = ["Result"]

WIDTH_CELLS = 100
_PAGE = '<pre style="font-family:monospace;line-height:1.2;white-space:pre">{code}</pre>'


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Result:
    """Outputs by name, the report and the cycles of a run that came out as it must. As a mapping it is that of its
    outputs: `"c" in result`, `dict(result)`.

    outputs: NumPy arrays in the dtype of their format: fp32 and tf32 float32, fp16 float16, bf16
        ml_dtypes.bfloat16, FP8 those of ml_dtypes, integers theirs; packed formats are left as their bits.
    tensors: the same as handles, to be operands of later calls.
    report: the keys of report.json (docs/report.md); on the golden machine, which knows no time, only those that say
        what ran, `metrics` and `notes`.
    cycles: of the tensor engine's clock, from the start to the last write; None on the golden machine.
    device: "rtl" or "golden".
    """

    tensors: Mapping[str, Tensor]
    report: Mapping[str, Any]
    cycles: int | None
    device: str
    outputs: Mapping[str, np.ndarray] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "outputs", {name: tensor.numpy() for name, tensor in self.tensors.items()})

    def __getitem__(self, name: str) -> np.ndarray:
        """The output of that name. Errors: plexus.Error lists them."""
        if name not in self.outputs:
            raise PlexusError(f"there is no output {name!r}; there are {', '.join(self.outputs) or 'none'}")
        return self.outputs[name]

    def __contains__(self, name: object) -> bool:
        return name in self.outputs

    def __iter__(self) -> Iterator[str]:
        return iter(self.outputs)

    def __len__(self) -> int:
        return len(self.outputs)

    def __bool__(self) -> bool:  # also of a run that left nothing
        return True

    def keys(self) -> KeysView[str]:
        """Names of outputs, so that `dict(result)` has them."""
        return self.outputs.keys()

    @property
    def output(self) -> np.ndarray:
        """The only output. Errors: plexus.Error if there are several."""
        if len(self.outputs) != 1:
            raise PlexusError(
                f"there are {len(self.outputs)} outputs ({', '.join(self.outputs)}): take one by its name"
            )
        return next(iter(self.outputs.values()))

    @property
    def tensor(self) -> Tensor:
        """The handle of the only output. Errors: plexus.Error if there are several."""
        if len(self.tensors) != 1:
            raise PlexusError(
                f"there are {len(self.tensors)} outputs ({', '.join(self.tensors)}): take one by its name"
            )
        return next(iter(self.tensors.values()))

    @property
    def nanoseconds(self) -> float | None:
        """Of the run; None on the golden machine."""
        return self.report.get("nanoseconds")

    @property
    def metrics(self) -> Mapping[str, Any]:
        """Errors against NumPy and other figures of the workload; empty for a kernel that has none."""
        return self.report["metrics"]

    def _rendered(self) -> RenderableType:
        if self.device == "rtl":
            return terminal.render(self.report)
        lines = [
            f"{self.report['workload']} on {self.report['config']}, golden machine: no cycles, {self.report['end']}"
        ]
        lines += [f"{name.replace('_', ' ')}: {value}" for name, value in self.metrics.items()]
        lines += [f"note: {note}" for note in self.report["notes"]]
        return Group(*map(Text, lines))

    def show(self) -> None:
        """Print the report."""
        Console().print(self._rendered())

    def _repr_html_(self) -> str:
        """The report, for a notebook."""
        console = Console(record=True, file=io.StringIO(), width=WIDTH_CELLS, force_jupyter=False)
        console.print(self._rendered())
        return console.export_html(inline_styles=True, code_format=_PAGE)

    def __repr__(self) -> str:
        found = ", ".join(f"{name} {array.dtype}{list(array.shape)}" for name, array in self.outputs.items())
        took = "no cycles" if self.cycles is None else f"{self.cycles:,} cycles"
        what = f"{self.report['workload']} on {self.report['config']}, {self.device}"
        return f"Result({what}: {found}; {took}; match {json.dumps(self.report['match'])})"
