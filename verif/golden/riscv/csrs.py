"""Control and status registers of a machine-mode hart, with entry to and return from traps.

Source: The RISC-V Instruction Set Manual, volume II, chapter "Machine-Level ISA". No counter but cycle, time and
instret, no protection, no other mode: registers of those do not exist here.
"""

from collections.abc import Callable

from verif.golden.riscv.traps import INTERRUPT
from verif.golden.riscv.vector.csrs import vector_readers, vector_writers
from verif.golden.riscv.vector.state import VectorState

__all__ = ["ADDRESSES", "NO_EVENTS", "Csrs"]

WORD = 0xFFFFFFFF
MISA = 1 << 30 | 1 << 12 | 1 << 8 | 1 << 2  # 32 bits, M, I, C
MIE, MPIE, MPP = 1 << 3, 1 << 7, 3 << 11
VS, DIRTY, SD = 9, 3, 1 << 31  # place of the two bits, what says that registers have changed, and its summary
PRIORITY = (11, 3, 7)  # external, software, timer
INTERRUPTS = sum(1 << n for n in PRIORITY)

ADDRESSES = {
    "mstatus": 0x300, "misa": 0x301, "mie": 0x304, "mtvec": 0x305, "mstatush": 0x310, "mcountinhibit": 0x320,
    "mscratch": 0x340, "mepc": 0x341, "mcause": 0x342, "mtval": 0x343, "mip": 0x344,
    "mcycle": 0xB00, "minstret": 0xB02, "mcycleh": 0xB80, "minstreth": 0xB82,
    "cycle": 0xC00, "time": 0xC01, "instret": 0xC02, "cycleh": 0xC80, "timeh": 0xC81, "instreth": 0xC82,
    "mvendorid": 0xF11, "marchid": 0xF12, "mimpid": 0xF13, "mhartid": 0xF14, "mconfigptr": 0xF15,
}  # fmt: skip
NO_EVENTS = (*range(0x323, 0x340), *range(0xB03, 0xB20), *range(0xB83, 0xBA0))
"""mhpmevent3 to 31, mhpmcounter3 to 31 and their upper halves: there, and always 0 (section on performance)."""


class Csrs:
    """Registers by address. `retired` and `trapped` count steps; mcycle is their sum, and so are cycle and time.

    With `vectors` their CSRs are there, and VS and SD of mstatus.
    """

    def __init__(self, hart_id: int, vectors: VectorState | None = None):
        self._vectors = vectors
        self.enabled = self.enabled_before = False  # MIE, MPIE of mstatus
        self.mie = self.mip = self.mtvec = self.mscratch = self.mepc = self.mcause = self.mtval = 0
        self.retired = self.trapped = 0
        self._instret_offset = self._cycle_offset = 0
        instret: Callable[[], int] = lambda: self.retired + self._instret_offset  # noqa: E731
        cycle: Callable[[], int] = lambda: self.retired + self.trapped + self._cycle_offset  # noqa: E731
        counters = {"mcycle": cycle, "minstret": instret, "cycle": cycle, "time": cycle, "instret": instret}
        readers: dict[str, Callable[[], int]] = {
            **counters,
            **{f"{name}h": lambda count=count: count() >> 32 for name, count in counters.items()},
            "mstatus": self._status,
            "misa": lambda: MISA,
            "mhartid": lambda: hart_id,
            **{name: lambda name=name: getattr(self, name) for name in ("mie", "mip", "mtvec", "mscratch", "mepc")},
            **{name: lambda name=name: getattr(self, name) for name in ("mcause", "mtval")},
        }
        self._readers = {address: readers.get(name, lambda: 0) for name, address in ADDRESSES.items()}
        self._readers |= {address: lambda: 0 for address in NO_EVENTS}
        writers: dict[str, Callable[[int], None]] = {
            "mstatus": self._set_status,
            "mie": lambda v: setattr(self, "mie", v & INTERRUPTS),
            "mtvec": lambda v: setattr(self, "mtvec", v & ~2),
            "mscratch": lambda v: setattr(self, "mscratch", v),
            "mepc": lambda v: setattr(self, "mepc", v & ~1),
            "mcause": lambda v: setattr(self, "mcause", v),
            "mtval": lambda v: setattr(self, "mtval", v),
            "mcycle": lambda v: self._set_cycle(cycle() >> 32 << 32 | v),
            "mcycleh": lambda v: self._set_cycle(v << 32 | cycle() & WORD),
            "minstret": lambda v: self._set_instret(instret() >> 32 << 32 | v),
            "minstreth": lambda v: self._set_instret(v << 32 | instret() & WORD),
        }
        self._writers = {ADDRESSES[name]: write for name, write in writers.items()}
        of_vectors = vector_readers(vectors) if vectors else {}
        self._of_vectors = frozenset(of_vectors)
        self._readers |= of_vectors
        self._cycle = cycle
        self._writers |= vector_writers(vectors) if vectors else {}

    def has(self, address: int, writes: bool = False) -> bool:
        """The register exists and, if `writes`, may be written: the highest bits of its address are not two ones."""
        return address in self._readers and not (writes and address >> 10 == 3)

    def usable(self, address: int) -> bool:
        """Not a register of vectors while these are off."""
        return address not in self._of_vectors or self._vectors is None or self._vectors.status != 0

    def read(self, address: int) -> int:
        """32 bits. Errors: KeyError if there is none."""
        return self._readers[address]() & WORD

    def write(self, address: int, value: int) -> None:
        """What an instruction writes; registers without bits that can change ignore it.

        A counter then holds `value` after that instruction: the write is made instead of counting it.
        """
        if address in self._writers:
            self._writers[address](value)
            if self._vectors and address in self._of_vectors:
                self._vectors.status = DIRTY

    @property
    def cycle(self) -> int:
        """All bits of mcycle."""
        return self._cycle() & (1 << 64) - 1

    def interrupt(self) -> int:
        """The interrupt to be taken now, as mcause holds it; 0 if there is none."""
        active = self.mip & self.mie
        if not active or not self.enabled:
            return 0
        return INTERRUPT | next(n for n in PRIORITY if active >> n & 1)

    def enter(self, cause: int, value: int, pc: int) -> int:
        """Take a trap at `pc`; where its handler is."""
        self.mcause, self.mtval, self.mepc = cause, value, pc
        self.enabled_before, self.enabled = self.enabled, False
        vectored = self.mtvec & 1 and cause & INTERRUPT
        return (self.mtvec & ~3) + (4 * (cause & ~INTERRUPT) if vectored else 0) & WORD

    def leave(self) -> int:
        """MRET; where it goes."""
        self.enabled, self.enabled_before = self.enabled_before, True
        return self.mepc

    def _status(self) -> int:
        vs = self._vectors.status if self._vectors else 0
        return MPP | MIE * self.enabled | MPIE * self.enabled_before | vs << VS | SD * (vs == DIRTY)

    def _set_status(self, value: int) -> None:
        self.enabled, self.enabled_before = bool(value & MIE), bool(value & MPIE)
        if self._vectors:
            self._vectors.status = value >> VS & 3

    def _set_cycle(self, value: int) -> None:
        self._cycle_offset = value - (self.retired + self.trapped + 1)

    def _set_instret(self, value: int) -> None:
        self._instret_offset = value - (self.retired + 1)
