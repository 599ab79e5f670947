"""Power, reset and the boot handshake (fact sheet 1, 3.2 and 3.4; rules 1, 10, 11, 12, 25)."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from enum import Enum

from .clock import Schedule
from .config import Config
from .registers import (
    BOOT_CONFIG,
    CHIP_ID,
    EFUSE,
    GLOBAL_RESET,
    INFO,
    IRQ_ENABLE,
    MAILBOX,
    NMI_REV,
    PIN_MUX,
    RF_REV,
    STATE,
    WAIT_FOR_HOST,
    Registers,
    swapped,
)
from .rules import Book
from .structs import rev_struct

ROM_READY, START, FIRMWARE_READY = 0x10ADD09E, 0xEF522F61, 0x02532636
EFUSE_DONE = 1 << 31
CPU_RUNS = 1 << 10
INFO_AT, MAC_AT, REV_AT, FACTORY_MAC_AT = 0x1000, 0x2000, 0x3000, 0x2010


class Stage(Enum):
    """How far the chip has come."""

    OFF = "off"
    HALTED = "CPU halted"
    ROM = "boot ROM"
    WAITING = "boot ROM waits for the host"
    STARTING = "firmware starts"
    READY = "firmware ready, not yet acknowledged"
    RUNNING = "firmware runs"


class Boot:
    """The boot state machine."""

    def __init__(
        self, config: Config, registers: Registers, schedule: Schedule, book: Book, rng: random.Random
    ) -> None:
        self.config = config
        self.registers = registers
        self.schedule = schedule
        self.book = book
        self.rng = rng
        self.stage = Stage.OFF
        self.bypass = False
        self.stuck: str | None = None  # fault: "efuse", "rom" or "firmware" never comes
        self.on_running: Callable[[], None] = lambda: None
        self.on_stopped: Callable[[], None] = lambda: None
        self._life = 0
        self._efuse = 0
        self._mailbox = 0
        self._state = 0
        self._config_word = 0
        self._version_word = 0
        self._reset_reg = 0xFFFF
        self._pin_mux = 0
        self._irq_enable = 0
        reads, writes = registers.on_read, registers.on_write
        reads[CHIP_ID] = lambda: config.boot.chip_id
        reads[RF_REV] = lambda: config.boot.rf_rev
        reads[EFUSE] = lambda: self._efuse
        reads[WAIT_FOR_HOST] = lambda: 0 if config.boot.wait_for_host else 1
        reads[MAILBOX] = lambda: self._mailbox
        reads[STATE] = lambda: self._state
        reads[BOOT_CONFIG] = lambda: self._config_word
        reads[INFO] = self._read_info
        reads[GLOBAL_RESET] = lambda: self._reset_reg
        reads[PIN_MUX] = lambda: self._pin_mux
        reads[IRQ_ENABLE] = lambda: self._irq_enable
        writes[MAILBOX] = self._write_mailbox
        writes[BOOT_CONFIG] = self._write_config
        writes[GLOBAL_RESET] = self._write_reset
        writes[PIN_MUX] = self._write_pin_mux
        writes[IRQ_ENABLE] = self._write_irq_enable
        writes[NMI_REV] = self._write_nmi_rev
        for addr in (CHIP_ID, EFUSE, RF_REV, WAIT_FOR_HOST, INFO):
            writes[addr] = self._read_only(addr)

    def _read_only(self, addr: int) -> Callable[[int], None]:
        def ignore(value: int) -> None:
            self.book.note(f"0x{value:X} written to the read-only address 0x{addr:X}")

        return ignore

    @property
    def running(self) -> bool:
        """Whether HIF messages are served."""
        return self.stage is Stage.RUNNING

    @property
    def irq_enabled(self) -> bool:
        """Whether the host has connected IRQN (rule 12)."""
        return bool(self._pin_mux & 0x100 and self._irq_enable & 0x10000)

    def power_up(self) -> None:
        """Out of reset: the ROM begins."""
        self._pin_mux = self._irq_enable = 0
        self._reset_reg = 0xFFFF
        self._start_rom(self.config.boot.efuse_us)

    def power_down(self) -> None:
        """Into reset: everything forgotten."""
        self._stop(Stage.OFF)
        self._efuse = 0

    def _stop(self, stage: Stage) -> None:
        self._life += 1
        self.stage = stage
        self._mailbox = self._state = self._config_word = self._version_word = 0
        self.on_stopped()

    def _start_rom(self, efuse_us: float) -> None:
        self._stop(Stage.ROM)
        life = self._life

        def efuse() -> None:
            if life != self._life or self.stuck == "efuse":
                return
            self._efuse = EFUSE_DONE | 0x1
            self.schedule.after_us(self.config.boot.rom_us, rom)

        def rom() -> None:
            if life != self._life or self.stuck == "rom":
                return
            self.stage = Stage.WAITING
            self._mailbox = ROM_READY

        self.schedule.after_us(efuse_us, efuse)

    # Registers of the handshake

    def _write_mailbox(self, value: int) -> None:
        if value == START:
            self._start_firmware()
        elif value == swapped(START):
            self.book.break_rule(4, f"start word written as 0x{value:08X}: the data went LSB first")
        else:
            self._mailbox = value

    def _start_firmware(self) -> None:
        problem = None
        if self.stage is not Stage.WAITING:
            problem = f"start word while in stage: {self.stage.value}"
        elif not self._version_word:
            problem = "start word before the version word in 0x108C"
        elif not self._config_word & 0x100:
            problem = f"start word with configuration 0x{self._config_word:X} in 0x14A0 (bit 8 must be set)"
        if problem:
            self.book.break_rule(10, problem)
            return
        self._mailbox = START
        self.stage = Stage.STARTING
        life = self._life

        def ready() -> None:
            if life != self._life or self.stuck == "firmware":
                return
            self.stage = Stage.READY
            self._state = FIRMWARE_READY

        self.schedule.after_us(self.config.boot.firmware_us, ready)

    def write_state(self, value: int) -> bool:
        """0x108C during boot. False when the firmware runs: then it is the message descriptor."""
        if self.stage is Stage.RUNNING:
            return False
        if self.stage is Stage.READY:
            if value:
                self.book.break_rule(10, f"0x108C = 0x{value:08X} before the ready word was answered with 0")
                return True
            self._state = 0
            self.stage = Stage.RUNNING
            self.bypass = bool(self._config_word & 0x80)
            self.on_running()
            return True
        if self.stage is Stage.WAITING:
            low, high = value & 0xFFFF, value >> 16
            if value and not (0x1300 <= low <= 0x1FFF and 0x1300 <= high <= 0x1FFF):
                back = swapped(value)
                if 0x1300 <= back & 0xFFFF <= 0x1FFF:
                    self.book.break_rule(4, f"version word written as 0x{value:08X}: the data went LSB first")
                else:
                    self.book.break_rule(10, f"0x{value:08X} is not a version word")
                return True
            self._version_word = value
            self._config_word = 0
        elif value:
            self.book.break_rule(10, f"0x108C = 0x{value:08X} in stage: {self.stage.value}")
        self._state = value
        return True

    def write_descriptor(self, value: int) -> None:
        """0x108C once the firmware runs."""
        self._state = value

    @property
    def descriptor(self) -> int:
        return self._state

    def _write_config(self, value: int) -> None:
        if value > 0xFFFF:
            self.book.break_rule(4, f"0x14A0 = 0x{value:08X}: the data went LSB first")
            return
        if self.stage is Stage.WAITING and not self._version_word:
            self.book.break_rule(10, "configuration in 0x14A0 before the version word in 0x108C")
            return
        if self.stage is not Stage.WAITING:
            self.book.break_rule(10, f"configuration in 0x14A0 in stage: {self.stage.value}")
            return
        self._config_word = value

    def _write_nmi_rev(self, value: int) -> None:
        self.registers.plain[NMI_REV] = value

    def _read_info(self) -> int:
        if self.stage in (Stage.READY, Stage.RUNNING):
            return INFO_AT
        self.book.break_rule(11, f"information pointer read in stage: {self.stage.value}")
        return 0

    def _write_pin_mux(self, value: int) -> None:
        self._pin_mux = value

    def _write_irq_enable(self, value: int) -> None:
        self._irq_enable = value

    def _write_reset(self, value: int) -> bool:
        if value == 0:
            self._reset_reg = 0xFFFF
            self._pin_mux = self._irq_enable = 0
            self.registers.power_up()
            self._start_rom(self.config.boot.efuse_us)
            return False
        halted, halt = not self._reset_reg & CPU_RUNS, not value & CPU_RUNS
        self._reset_reg = value
        if halt and not halted:
            self._stop(Stage.HALTED)
        elif halted and not halt:
            self._start_rom(0)
        return True

    # Information blocks in RAM

    def info_blocks(self) -> dict[int, bytes]:
        """Address in the RAM window -> bytes, readable once the firmware has started (fact sheet 3.4)."""
        if self.stage not in (Stage.READY, Stage.RUNNING):
            return {}
        mac = self.config.mac_bytes
        factory = FACTORY_MAC_AT if self.config.factory_mac else 0
        return {
            0x30000 | INFO_AT: struct.pack("<HHHH", MAC_AT, factory, REV_AT, 0),
            0x30000 | MAC_AT: mac,
            0x30000 | FACTORY_MAC_AT: mac,
            0x30000 | REV_AT: rev_struct(self.config.version, self.config.boot.chip_id),
        }
