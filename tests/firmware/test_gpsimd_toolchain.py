"""C and C++ to images of the GPSIMD engine; scalar images run on unicorn, and what they print is Python's."""

import importlib.util
import random
from pathlib import Path

import pytest

from firmware.gpsimd import generated, tools
from firmware.gpsimd.build import Built, build
from firmware.gpsimd.core import core_of, need_fit
from firmware.gpsimd.elf import read_image
from firmware.gpsimd.errors import FirmwareError
from firmware.gpsimd.image import Image
from firmware.gpsimd.link_script import link_script
from firmware.gpsimd.options import Options
from firmware.gpsimd.report import long_functions
from firmware.gpsimd.where import where
from rtl.contract.config import NAMED, load
from rtl.contract.descriptor import DESCRIPTOR
from rtl.contract.gpsimd import RUN, Mailbox, Region, WaitFor, cores, lane_address
from rtl.contract.isa import INSTRUCTION, PATTERN
from rtl.contract.memmap import Space, address
from sim.cli import main
from sim.toolchain import ROOT

APPS = ROOT / "firmware" / "gpsimd" / "apps"
NEEDED = {"ziglang": "make firmware-tools", "unicorn": "make setup"}
MISSING = [f"no {name}: {how}" for name, how in NEEDED.items() if importlib.util.find_spec(name) is None]


def compiled(test):
    """A test that needs the compiler, and what runs its code."""
    return pytest.mark.firmware(pytest.mark.skipif(bool(MISSING), reason="; ".join(MISSING))(test))


SCALAR = Options(vector=False)
WITHOUT_VECTORS = "gpsimd.vectors=false"


def made(tmp_path: Path, text: str, options: Options = SCALAR, *, name: str = "a.c") -> Image:
    source = tmp_path / name
    source.write_text(text)
    return read_image(build([source], options=options).path)


def ran(image: Image, **more):
    from verif.checks.unicorn_core import run_image

    return run_image(image, **more)


def signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (value >> (bits - 1) << bits)


# without the compiler


def test_generated_files_are_what_the_contract_says() -> None:
    wrong = [str(path) for path, text in generated.generated_files().items() if path.read_text() != text]
    assert not wrong, f"renew with python -m firmware.gpsimd.generated --write: {', '.join(wrong)}"


def test_regions_and_registers_do_not_overlap() -> None:
    assert sorted(Mailbox) == list(Mailbox)
    assert all(register % 4 == 0 for register in Mailbox)
    assert Region.LOCAL + (1 << 22) <= Region.SBUF_ROWS < Region.SHARED < Region.LOCAL_TOO
    assert Mailbox.SEMAPHORE_BASE + 4 * 4096 <= Mailbox.SEMAPHORE_ADD <= Mailbox.END - 4 * 4096
    assert INSTRUCTION.bytes == Mailbox.CORE - Mailbox.ARGUMENT
    widest = {name: cfg.partitions // cores(cfg.partitions) for name, cfg in NAMED.items()}
    assert (widest["full"], widest["small"], widest["tiny"]) == (16, 8, 4)
    assert all(lane_address(lanes - 1, (1 << 18) - 1, lanes) < Region.MAILBOX for lanes in widest.values())


@pytest.mark.parametrize(
    ("local", "stack", "says"),
    [
        (100, 16, "a power of two from 16,384 to 4,194,304 bytes, not 100"),
        (1 << 23, 16, "not 8,388,608"),
        (65535, 16, "not 65,535"),
        (65536, 0, "a stack has a multiple of 16 bytes below those of local memory (65,536), not 0"),
        (65536, 100, "not 100"),
        (65536, 65536, "not 65,536"),
    ],
)
def test_memory_that_cannot_be(local: int, stack: int, says: str) -> None:
    with pytest.raises(FirmwareError) as error:
        link_script(local, stack)
    assert says in str(error.value)


def test_without_the_compiler_a_sentence_tells_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tools.importlib.util, "find_spec", lambda _: None)
    assert main(["firmware", "build", str(APPS / "hello.cpp"), "-o", str(tmp_path / "a.elf")]) == 2
    said = capsys.readouterr().err
    assert said == (
        "plexus: the RISC-V compiler (ziglang) is not installed beside this Python: run make firmware-tools\n"
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["build", "-o", "x.elf"], "Missing argument 'SOURCE...'"),
        (["build", "nothing.c", "-o", "x.elf"], "nothing.c: there is no such file"),
        (["build", "README.md", "-o", "x.elf"], "README.md: a source ends in .c, .cc, .cpp"),
        (["build", "hello.cpp"], "Missing option '-o'"),
        (["info", "nothing.elf"], "nothing.elf cannot be read: No such file or directory"),
        (["info", __file__], "is no ELF file: it begins with 22 22 22 43"),
    ],
)
def test_wrong_use_is_a_sentence(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["firmware", *arguments]) == 2
    said = capsys.readouterr().err
    assert says in said and said.startswith("plexus: ") and said.count("\n") == 1


# compiled


@compiled
def test_hello_sums_its_arguments(tmp_path: Path) -> None:
    """Partitions 2 to 7 of which core 1 of 4 has 4 to 7; a strided pattern."""
    lanes, rng = 4, random.Random(2)
    image = read_image(build([APPS / "hello.cpp"], options=SCALAR).path)
    sbuf = bytearray(lanes << 18)
    values = [[rng.randrange(-(1 << 30), 1 << 30) for _ in range(10)] for _ in range(lanes)]
    for partition, row in enumerate(values):
        for i, value in enumerate(row):
            at = (partition << 18) + 64 + 8 * i
            sbuf[at : at + 4] = value.to_bytes(4, "little", signed=True)
    word = INSTRUCTION.pack(
        imm0=RUN.pack(cores=0b1111),
        src0_offset=64, src0_partition_start=2, src0_partition_count=6, src0_step0=2, src0_count0=10,
        src0_count1=1, src0_count2=1, src0_count3=1,
        dst_offset=1024, dst_partition_start=2, dst_partition_count=6, dst_step0=1, dst_count0=1,
    )  # fmt: skip
    mailbox = {Mailbox.CORE: 1, Mailbox.CORES: 4, Mailbox.LANES: lanes, **argument(word)}
    outcome = ran(image, registers=mailbox, sbuf=bytes(sbuf))
    sums = [signed(sum(row), 32) for row in values]
    assert outcome.printed == f"hello from core 1 of 4: partitions 0 to 4, sum {sum(sums)}\n"
    assert outcome.done == 0
    found = [int.from_bytes(outcome.memory[(p << 18) + 1024 :][:4], "little", signed=True) for p in range(lanes)]
    assert found == sums


def argument(word: int) -> dict[int, int]:
    """Registers that hold an instruction word."""
    return {Mailbox.ARGUMENT + 4 * i: word >> 32 * i & 0xFFFF_FFFF for i in range(32)}


@compiled
def test_fields_of_the_instruction(tmp_path: Path) -> None:
    """Random words: patterns, immediates, mask and rank come out as they were packed."""
    image = made(
        tmp_path,
        r"""
#include <plexus/gp.h>
static void show(uint32_t operand) {
    gp_pattern p = gp_pattern_of(operand);
    gp_printf("%u %u %u %u %u", p.offset, p.partition_start, p.partition_count, p.space, p.dtype);
    for (int i = 0; i < 4; i++) gp_printf(" %d %u", p.step[i], p.count[i]);
    gp_printf("\n");
}
int main(void) {
    show(GP_SRC0), show(GP_SRC1), show(GP_DST);
    gp_printf("%llu %llu %u\n", gp_imm1(), gp_imm2(), GP_ARGUMENT(WAIT1_SEMAPHORE));
    gp_printf("%u %u %u\n", gp_run_mask(), gp_run_cores(), gp_run_rank());
    return -3;
}""",
    )
    rng = random.Random(3)
    for _ in range(5):
        word, core = rng.getrandbits(1024), rng.randrange(8)
        fields = INSTRUCTION.unpack(word)
        names = [f.name for f in PATTERN if f.name != "reserved"]
        lines = [" ".join(str(fields[f"{operand}_{name}"]) for name in names) for operand in ("src0", "src1", "dst")]
        lines.append(f"{fields['imm1']} {fields['imm2']} {fields['wait1_semaphore']}")
        mask = RUN.unpack(fields["imm0"])["cores"]
        lines.append(f"{mask} {mask.bit_count()} {(mask & ((1 << core) - 1)).bit_count()}")
        outcome = ran(image, registers={Mailbox.CORE: core, **argument(word)})
        assert outcome.printed.splitlines() == lines and outcome.done == -3


@compiled
def test_a_descriptor_is_the_words_of_the_contract(tmp_path: Path) -> None:
    image = made(
        tmp_path,
        r"""
#include <plexus/gp.h>
int main(void) {
    static gp_descriptor d;
    uint64_t source = gp_address(PLEXUS_SPACE_HBM, 0x123456780ull, 5);
    uint64_t destination = gp_address(PLEXUS_SPACE_SBUF, 3 * PLEXUS_PARTITION_STRIDE_BYTES + 40, 0);
    gp_descriptor_copy(&d, destination, source, 4096, 7, PLEXUS_PARTITION_STRIDE_BYTES, -8192);
    gp_dma_push(&d);
    gp_dma_wait(1);
    for (int i = 0; i < 32; i++) gp_printf("%08x\n", d.word[i]);
    return 0;
}""",
    )
    outcome = ran(image, registers={Mailbox.WAIT_STATUS: 1})
    words = [int(line, 16) for line in outcome.printed.splitlines()]
    assert sum(word << 32 * i for i, word in enumerate(words)) == DESCRIPTOR.pack(
        source=address(Space.HBM, 0x1_2345_6780, core_id=5),
        destination=address(Space.SBUF, (3 << 18) + 40),
        row_bytes=4096, count0=7, destination_step0=1 << 18, source_step0=-8192, count1=1, count2=1,
    )  # fmt: skip
    (push, at), *rest = outcome.stores
    assert push == Mailbox.DMA_PUSH and at % 128 == 0 and Region.LOCAL <= at < Region.LOCAL + 65536
    assert rest == [(Mailbox.WAIT_VALUE, 1), (Mailbox.WAIT_COMPARE, WaitFor.DMA), (Mailbox.WAIT_COMPARE, 0)]


@compiled
def test_waits_timer_barrier_and_semaphores(tmp_path: Path) -> None:
    image = made(
        tmp_path,
        r"""
#include <plexus/gp.h>
int main(void) {
    gp_wait_semaphore_ge(9, -2);
    gp_wait_time(0x123456789ull);
    gp_barrier();
    gp_semaphore_set(3, -1);
    gp_semaphore_add(4095, 5);
    gp_printf("%d %llx %llu", (int)gp_semaphore(17), gp_time(), gp_counter(PLEXUS_COUNTER_BYTES));
    return 0;
}""",
    )
    counter = Mailbox.COUNTERS + 8 * 16
    outcome = ran(image, registers={
        Mailbox.WAIT_STATUS: 1, Mailbox.BARRIER: 6, Mailbox.SEMAPHORE_BASE + 4 * 17: (1 << 32) - 12, counter: 1,
        counter + 4: 1, Mailbox.MTIME: 0xFFFF_0000, Mailbox.MTIMEH: 2,
    })  # fmt: skip
    minus = 1 << 32
    assert outcome.stores == [
        (Mailbox.WAIT_SEMAPHORE, 9), (Mailbox.WAIT_VALUE, minus - 2), (Mailbox.WAIT_COMPARE, WaitFor.SEMAPHORE_GE),
        (Mailbox.WAIT_COMPARE, 0),
        (Mailbox.MTIMECMPH, minus - 1), (Mailbox.MTIMECMP, 0x2345_6789), (Mailbox.MTIMECMPH, 1),
        (Mailbox.WAIT_VALUE, 0), (Mailbox.WAIT_COMPARE, WaitFor.TIMER), (Mailbox.WAIT_COMPARE, 0),
        (Mailbox.BARRIER, 1), (Mailbox.WAIT_VALUE, 7), (Mailbox.WAIT_COMPARE, WaitFor.BARRIER),
        (Mailbox.WAIT_COMPARE, 0),
        (Mailbox.SEMAPHORE_BASE + 12, minus - 1), (Mailbox.SEMAPHORE_ADD + 4 * 4095, 5),
    ]  # fmt: skip
    assert outcome.printed == f"-12 2ffff0000 {(1 << 32) + 1}"


@compiled
def test_division_of_64_bits(tmp_path: Path) -> None:
    rng = random.Random(4)
    edges = [0, 1, -1, 2, 10, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]
    pairs = [(n, d) for n in edges for d in edges if d]
    pairs += [(rng.getrandbits(rng.randrange(1, 65)), rng.getrandbits(rng.randrange(1, 65)) or 1) for _ in range(200)]
    pairs = [(n & (1 << 64) - 1, d & (1 << 64) - 1) for n, d in pairs]
    table = ", ".join(f"{{{n}ull, {d}ull}}" for n, d in pairs)
    image = made(
        tmp_path,
        f"""
#include <plexus/gp.h>
static volatile const uint64_t pairs[][2] = {{{table}}};
int main(void) {{
    for (uint32_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {{
        uint64_t n = pairs[i][0], d = pairs[i][1];
        gp_printf("%llu %llu ", n / d, n % d);
        if (!(n == 1ull << 63 && d == ~0ull)) gp_printf("%lld %lld", (int64_t)n / (int64_t)d, (int64_t)n % (int64_t)d);
        gp_printf("\\n");
    }}
    return (int)(pairs[0][0] / 1);
}}""",
    )
    lines = []
    for n, d in pairs:
        a, b = signed(n, 64), signed(d, 64)
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        toward_zero = "" if (n, d) == (1 << 63, (1 << 64) - 1) else f"{quotient} {a - quotient * b}"
        lines.append(f"{n // d} {n % d} {toward_zero}")
    assert ran(image).printed.split("\n")[:-1] == lines


@compiled
def test_division_by_0_is_that_of_the_32_bit_instructions(tmp_path: Path) -> None:
    image = made(
        tmp_path,
        r"""
#include <plexus/gp.h>
static volatile uint64_t n = 5ull << 40, d = 0;
int main(void) {
    gp_printf("%llx %llx %lld %lld", n / d, n % d, (int64_t)n / (int64_t)d, (int64_t)n % (int64_t)d);
    return 0;
}""",
    )
    assert ran(image).printed == f"{(1 << 64) - 1:x} {5 << 40:x} -1 {5 << 40}"


@compiled
def test_printf_is_that_of_python(tmp_path: Path) -> None:
    rng = random.Random(5)
    calls, lines = [], []
    for _ in range(150):
        flag, width = rng.choice(("", "-", "0")), rng.choice(("", "1", "3", "8", "12"))
        flag = flag if width else ""
        letter = rng.choice("duxXcs")
        if letter in "cs":
            flag = flag.replace("0", "")
            text = rng.choice("xyz") if letter == "c" else "".join(rng.choice("abc %") for _ in range(rng.randrange(9)))
            calls.append(f'"%{flag}{width}{letter}", ' + (f"'{text}'" if letter == "c" else f'"{text}"'))
            lines.append(f"%{flag}{width}{letter}" % text)
            continue
        bits = rng.choice((32, 64))
        value = rng.getrandbits(rng.randrange(1, bits + 1))
        long, cast = ("ll", "int64_t") if bits == 64 else ("", "int32_t")
        calls.append(f'"%{flag}{width}{long}{letter}", ({cast if letter == "d" else "u" + cast}){value}ull')
        lines.append(f"%{flag}{width}{letter}" % (signed(value, bits) if letter == "d" else value))
    body = "\n".join(f"total += gp_printf({call}); gp_put(10);" for call in calls)
    image = made(tmp_path, f"#include <plexus/gp.h>\nint main(void) {{ int total = 0;\n{body}\nreturn total; }}")
    outcome = ran(image)
    assert outcome.printed.split("\n")[:-1] == lines
    assert outcome.done == sum(map(len, lines))


@compiled
def test_the_rest_of_printf(tmp_path: Path) -> None:
    call = r'gp_printf("%p|%i|%%|%s|%05d|%q|100%", (void *)0x1f, -5, (char *)0, -42)'
    options = Options(vector=False, flags=("-Wno-format",))
    assert ran(made(tmp_path, f"#include <plexus/gp.h>\nint main(void) {{ {call}; return 0; }}", options)).printed == (
        "0x1f|-5|%|(null)|-0042|%q|100"
    )


@compiled
def test_memory_functions(tmp_path: Path) -> None:
    rng = random.Random(6)
    steps, memory = [], bytearray(range(256))
    for _ in range(60):
        count = rng.choice((0, 1, 2, 3, 4, 7, 16, rng.randrange(100)))
        to, source = rng.randrange(256 - count), rng.randrange(256 - count)
        if rng.random() < 0.3:
            memory[to : to + count] = bytes([to]) * count
            steps.append(f"memset(m + {to}, {to + 256}, n({count}));")
        elif abs(to - source) >= count and rng.random() < 0.5:
            memory[to : to + count] = memory[source : source + count]
            steps.append(f"memcpy(m + {to}, m + {source}, n({count}));")
        else:
            memory[to : to + count] = memory[source : source + count]
            steps.append(f"memmove(m + {to}, m + {source}, n({count}));")
    image = made(
        tmp_path,
        f"""
#include <plexus/gp.h>
#include <string.h>
static volatile uint32_t zero;
static size_t n(size_t count) {{ return count + zero; }}
int main(void) {{
    uint8_t m[256];
    for (int i = 0; i < 256; i++) m[i] = (uint8_t)i;
    {" ".join(steps)}
    for (int i = 0; i < 256; i++) gp_printf("%02x", m[i]);
    return memcmp("ab", "ac", n(2)) < 0 && strcmp("a", "a") == 0 && strcmp("b", "ab") > 0 && strlen("abc") == 3;
}}""",
    )
    outcome = ran(image)
    assert bytes.fromhex(outcome.printed) == memory and outcome.done == 1


C_PROGRAM = r"""
#include <plexus/gp.h>
#include <string.h>
static uint32_t ackermann(uint32_t m, uint32_t n) {
    return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}
static const char *name(int digit) {
    switch (digit) {
    case 0: return "zero";
    case 1: return "one";
    case 2: return "two";
    case 3: return "three";
    case 4: return "four";
    case 5: return "five";
    case 17: return "seventeen";
    default: return "many";
    }
}
static int compare(const char *a, const char *b) { return strcmp(a, b); }
int main(int count, char **arguments) {
    const char *words[6];
    int order[] = {17, 3, 5, 1, 40, 2};
    for (int i = 0; i < 6; i++) words[i] = name(order[i]);
    for (int i = 1; i < 6; i++)
        for (int j = i; j && compare(words[j - 1], words[j]) > 0; j--) {
            const char *swap = words[j];
            words[j] = words[j - 1], words[j - 1] = swap;
        }
    for (int i = 0; i < 6; i++) gp_printf("%s ", words[i]);
    float sum = 0;
    for (int i = 1; i < 20; i++) sum += 1.0f / (float)(i * i);
    gp_printf("%u %d %d", ackermann(2, 6), count, (int)(sum * 1000));
    gp_exit(arguments ? 1 : 77);
}
"""


@compiled
@pytest.mark.parametrize("level", ["-Os", "-O0", "-O2"])
def test_a_program_with_recursion_strings_and_floats(tmp_path: Path, level: str) -> None:
    outcome = ran(made(tmp_path, C_PROGRAM, Options(vector=False, flags=(level,))))
    words = sorted(["seventeen", "three", "five", "one", "many", "two"])
    total = int(sum(1 / (i * i) for i in range(1, 20)) * 1000)
    assert outcome.printed == " ".join([*words, "15 0", str(total)]) and outcome.done == 77


@compiled
def test_cplusplus_objects(tmp_path: Path) -> None:
    """Constructors run before main, virtual functions are called, bss is 0 in memory that was not."""
    image = made(
        tmp_path,
        r"""
#include <plexus/view.h>
struct Shape { virtual int area() const = 0; virtual ~Shape() {} };
template <int N> struct Square : Shape { int area() const override { return N * N; } };
struct Counted { int value; explicit Counted(int v) : value(v) { made++; } ~Counted() { made--; } static int made; };
int Counted::made;
int read(), cleared[40], kept GP_KEEP;
Counted first(read()), second(8);
int data = 5;
int read() { return data + 2; }
int main() {
    Square<3> three; Square<4> four;
    const Shape *shapes[] = {&three, &four};
    int area = 0, sum = 0;
    for (auto *shape : shapes) area += shape->area();
    for (int x : cleared) sum |= x;
    static Counted inside(9);
    gp::printf("%d %d %d %d %d %d %x", area, first.value, second.value, inside.value, Counted::made, sum, kept);
    return 0;
}""",
        name="a.cpp",
    )
    assert ran(image).printed == "25 7 8 9 3 0 a5a5a5a5"


@compiled
def test_headers_of_the_cplusplus_library(tmp_path: Path) -> None:
    image = made(
        tmp_path,
        r"""
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <plexus/view.h>
int main() {
    std::array<std::int32_t, 6> a{5, 3, 9, -1, 7, 2};
    std::sort(a.begin(), a.end(), [](int x, int y) { return x < y; });
    for (int x : a) gp::printf("%d ", x);
    char text[8];
    std::memcpy(text, "plexus", 7);
    gp::printf("%d %d %s", std::accumulate(a.begin(), a.end(), 0), std::numeric_limits<int>::max(), text);
    return int(std::lower_bound(a.begin(), a.end(), 7) - a.begin());
}""",
        name="a.cpp",
    )
    outcome = ran(image)
    assert outcome.printed == f"-1 2 3 5 7 9 25 {(1 << 31) - 1} plexus" and outcome.done == 4


@compiled
def test_an_entry_is_started_by_its_name(tmp_path: Path) -> None:
    image = made(
        tmp_path,
        r"""
#include <plexus/gp.h>
GP_ENTRY(first) { gp::printf("first"); return 1; }
GP_ENTRY(second) { gp::printf("second"); return 2; }
""",
        name="a.cpp",
    )
    assert image.entries == ("first", "second")
    for number, name in enumerate(image.entries, 1):
        outcome = ran(image, entry=image.entry_of(name))
        assert (outcome.printed, outcome.done) == (name, number)
    assert ran(image).done == 0, "a program of entries alone has a main that does nothing"


@compiled
@pytest.mark.parametrize(
    ("body", "cause", "line"),
    [
        ("return *(volatile int *)4;", 5, 4),
        ("*(volatile int *)0x90000000 = 1;", 7, 4),
        ("return deep(&one);", 7, 2),
    ],
)
def test_a_trap_is_reported_with_its_line(tmp_path: Path, body: str, cause: int, line: int) -> None:
    """Null, a wild store, and a stack that overflows: the last leaves memory at its bottom."""
    image = made(
        tmp_path,
        f"""#include <plexus/gp.h>
int deep(volatile int *p) {{ volatile int a[64]; a[0] = *p; return deep(a) + a[1]; }} static volatile int one = 1;
int main(void) {{
    {body}
    (void)one; return 0; }}""",
        Options(vector=False, flags=("-Wno-infinite-recursion",)),
    )
    outcome = ran(image)
    assert outcome.trap is not None and outcome.done is None
    found, pc, value = outcome.trap
    assert found == cause and where(image.path, pc) == f"a.c:{line}"
    assert line == 4 or value == Region.LOCAL - 4 or Region.LOCAL - 300 < value < Region.LOCAL


@compiled
def test_a_handler_of_its_own(tmp_path: Path) -> None:
    image = made(
        tmp_path,
        r"""
#include <plexus/gp.h>
static volatile uint32_t causes;
GP_TRAP_HANDLER on_trap(void) {
    causes = causes << 8 | GP_CSR_READ(mcause);
    GP_CSR_WRITE(mepc, GP_CSR_READ(mepc) + 4);
}
int main(void) {
    gp_set_trap_handler(on_trap);
    __asm__ volatile(".option push\n.option norvc\nlw zero, 4(zero)\nsw zero, 8(zero)\n.option pop");
    return (int)causes;
}""",
    )
    assert ran(image).done == 0x507


@compiled
def test_plain_loops_become_vectors_of_any_length() -> None:
    image = read_image(build([APPS / "vector_add.cpp"], options=Options(vector=True)).path)
    assert image.functions["gp_body_vector_add"].vector_instructions >= 4
    assert image.arch is not None and image.arch.vlen_bits == 128 and "zve32x" in image.arch.extensions
    for name in NAMED:
        need_fit(image, core_of(NAMED[name]))
        with pytest.raises(FirmwareError, match="--set gpsimd.vectors=true gives it vectors"):
            need_fit(image, core_of(load(name, [WITHOUT_VECTORS])))
    bare = read_image(build([APPS / "vector_add.cpp"], options=SCALAR).path)
    assert not any(function.vector_instructions for function in bare.functions.values())
    assert bare.arch is not None and "zve32x" not in bare.arch.extensions


@compiled
def test_a_longer_vector_is_refused_where_it_is_not(tmp_path: Path) -> None:
    flags = ("-mcpu=generic_rv32+m+c+zicsr+zifencei+zve32x+zvl512b",)
    image = made(tmp_path, (APPS / "vector_add.cpp").read_text(), Options(vector=True, flags=flags), name="a.cpp")
    need_fit(image, core_of(NAMED["full"]))
    with pytest.raises(FirmwareError, match=r"at least 512 bits \(zvl512b\), and a core of small has VLEN 256"):
        need_fit(image, core_of(NAMED["small"]))


@compiled
def test_intrinsics_and_a_warning_of_loops_that_are_better_without(tmp_path: Path) -> None:
    image = made(
        tmp_path,
        r"""
#include <plexus/gp.h>
#include <riscv_vector.h>
GP_ENTRY(twice) {
    int32_t *x = (int32_t *)gp_lane_row(0);
    size_t vl = __riscv_vsetvl_e32m1(gp_lanes());
    vint32m1_t v = __riscv_vle32_v_i32m1(x, vl);
    __riscv_vse32_v_i32m1(x, __riscv_vadd_vv_i32m1(v, v, vl), vl);
    return 0;
}""",
        Options(vector=True),
    )
    assert image.functions["gp_body_twice"].vector_instructions == 4
    assert not list(long_functions(image))
    asm = '__asm__ volatile(".rept 300\\nvadd.vv v8, v8, v8\\n.endr");'
    image = made(tmp_path, f"int main(void) {{ {asm} return 0; }}", Options(vector=True))
    (warning,) = long_functions(image)
    assert warning.startswith("main (a.c:1) has 300 vector instructions, more than 256: ")


@compiled
def test_what_the_start_code_and_the_runtime_take() -> None:
    image = read_image(build([APPS / "hello.cpp"], options=Options(vector=True)).path)
    assert len(image.bytes()) <= 3072


@compiled
def test_the_compilers_words_come_before_the_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, output = tmp_path / "a.c", tmp_path / "a.elf"
    source.write_text("int main(void) { return missing; }\n")
    assert main(["firmware", "build", str(source), "-o", str(output)]) == 2
    said = capsys.readouterr().err.splitlines()
    assert said[0].endswith("a.c:1:25: error: use of undeclared identifier 'missing'")
    assert said[-1] == f"plexus: {source} could not be compiled: the compiler's words are above"
    source.write_text("int far[20000] = {1}; int main(void) { return far[far[0]]; }\n")
    assert main(["firmware", "build", str(source), "-o", str(output)]) == 2
    said = capsys.readouterr().err.splitlines()
    assert "will not fit in region 'LOCAL'" in said[0]
    assert "a.c could not be linked (local memory of 65,536 bytes, 4,096 of them stack): " in said[-1]
    assert not output.exists()
    assert main(["firmware", "build", str(source), "-o", str(output), "--local-bytes", "131072"]) == 0
    assert main(["firmware", "info", str(output), "--config", "small"]) == 2
    assert "and local memory of a core of small has 65,536" in capsys.readouterr().err


@compiled
def test_info_tells_what_is_in_an_image(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "a.elf"
    assert main(["firmware", "build", "--vectors", str(APPS / "vector_add.cpp"), "-o", str(output)]) == 0
    assert " bytes loaded, 0 cleared or kept, 4,096 of stack" in capsys.readouterr().out
    assert main(["firmware", "info", str(output)]) == 0
    said = capsys.readouterr().out
    for text in ("entry 0x10001000\n", " vector_add\n", "VLEN at least 128", "not loaded  .stack",
                 "small  runs it (VLEN 256, local memory 65,536 bytes)"):  # fmt: skip
        assert text in said
    assert main(["firmware", "info", str(output), "--config", "small", "--set", WITHOUT_VECTORS]) == 2
    assert "a core of small has" in capsys.readouterr().err


@compiled
def test_an_image_is_built_again_only_when_something_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, header = tmp_path / "a b.c", tmp_path / "size.h"
    source.write_text('#include "size.h"\nint main(void) { return SIZE; }\n')
    header.write_text("#define SIZE 3\n")

    def again() -> Built:
        return build([source], options=SCALAR)

    assert not again().cached and again().cached
    assert ran(read_image(again().path)).done == 3
    header.write_text("#define SIZE 4\n")
    assert not again().cached and ran(read_image(again().path)).done == 4
    assert not build([source], options=Options(vector=False, stack_bytes=8192)).cached
    again().path.write_bytes(b"spoiled")
    assert not again().cached and ran(read_image(again().path)).done == 4
