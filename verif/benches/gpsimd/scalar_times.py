"""What a scalar core shows of time: CSRs that the golden hart, which has none, takes from the hardware."""

from collections import deque

from verif.golden.riscv.csrs import Csrs

__all__ = ["ScalarTimes"]

_MIP, _MTIME, _MTIMEH = 0x344, 0xC01, 0xC81
_MCYCLE, _MCYCLEH = (0xB00, 0xC00), (0xB80, 0xC80)
_WORD = 0xFFFFFFFF
_SEEN = 5
"""Cycles from one in which an instruction reads `time` to one in which it is compared, at most."""
_RESET = 8
"""Cycles from the reset to the first of the bench's, at most."""


class ScalarTimes:
    """mcycle goes up in each cycle, time is one of the last ones that were shown, mip what was pending."""

    def __init__(self) -> None:
        self.shown: deque[int] = deque(maxlen=_SEEN)  # values of mtime
        self._since: int | None = None  # mcycle less the cycle in which it was read
        self._begun = False

    def is_timed(self, number: int) -> bool:
        """Whether a CSR shows when something happens."""
        return number in (_MIP, _MTIME, _MTIMEH, *_MCYCLE, *_MCYCLEH)

    def check(self, number: int, value: int, cycle: int, pending: set[int]) -> None:
        """An instruction has read this, and is compared in `cycle`; `pending`: what mip may have been."""
        if number == _MIP:
            assert value in pending, f"mip is {value:#x}, and pending were {pending}"
        elif number in (_MTIME, _MTIMEH):
            shift = 32 if number == _MTIMEH else 0
            assert value in {time >> shift & _WORD for time in self.shown}, f"time is {value:#x}, shown {self.shown}"
        elif not self._begun:
            if number in _MCYCLE:
                self._begun, self._since = True, value - cycle
                assert -_RESET <= self._since <= _RESET, f"mcycle is {value} in cycle {cycle}"
            else:
                assert value == 0, f"mcycleh is {value} in cycle {cycle}"
        elif self._since is not None:
            need = cycle + self._since >> (32 if number in _MCYCLEH else 0) & _WORD
            assert value == need, f"mcycle, or its upper half, is {value:#x}, must be {need:#x}"

    def written(self, word: int, cycle: int, csrs: Csrs) -> None:
        """A CSR instruction has retired; `csrs` hold what it has written."""
        number, funct3 = word >> 20, word >> 12 & 7
        writes = funct3 & 3 == 1 or word >> 15 & 31
        if funct3 & 3 == 0 or not writes or number not in (_MCYCLE[0], _MCYCLEH[0]):
            return
        knows = funct3 & 3 == 1 or word >> 7 & 31  # else what it had read was not seen
        if not self._begun or self._since is None or not knows:
            self._begun, self._since = True, None
            return
        value, old = csrs.cycle, cycle + self._since
        new = old >> 32 << 32 | value & _WORD if number == _MCYCLE[0] else value >> 32 << 32 | old & _WORD
        self._since = new - cycle - 1
