// What a machine provides to the port. Everything else of the port is common code.
// Implemented in machines/<machine>/ (and arch/ for what machines of one CPU share).
#ifndef PORT_MACHINE_H
#define PORT_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "machine_config.h"
#include "arch_irq.h"

// Clocks, time base, console and interrupt priorities. Called once, before anything else.
void machine_init(void);

// A free-running 64-bit counter of MACHINE_TICKS_PER_US ticks per microsecond. Never goes back.
uint64_t machine_time_ticks(void);

// Sleep until an interrupt is pending. Called with interrupts disabled; returns with them disabled.
void machine_wait(void);

// Hard reset of the whole machine. Does not return.
void machine_hard_reset(void) __attribute__((noreturn));

// Random 32 bits from the hardware, or 0 when the machine has no source.
// True when the last start was a reset that the program or a fault asked for.
bool machine_reset_cause_was_hard(void);

uint32_t machine_entropy(void);

// Console. The receive interrupt calls console_rx() for each character while console_rx_room().
void machine_console_write(const uint8_t *buf, size_t len);
void machine_console_rx_resume(void); // room again: re-enable the receive interrupt

// Memory that survives soft and hard reset (zero or garbage after power-up).
extern uint8_t machine_ramdisk[];
extern uint8_t machine_romfs[];

// --- called by the machine ---
bool console_rx_room(void);
void console_rx(uint8_t c);
void port_tick(void);            // each millisecond, from the tick interrupt
void port_event(void);           // from any other interrupt that may end a wait
void net_softirq(void);          // from the software interrupt that machine_softirq_pend() asked for
void port_fatal(const char *what) __attribute__((noreturn));

#endif
