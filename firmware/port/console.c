// Standard input and output over the machine's serial console.
#include "py/mphal.h"
#include "py/runtime.h"
#include "py/stream.h"

#define RX_SIZE (1024) // a power of two

static uint8_t rx_buf[RX_SIZE];
static volatile uint32_t rx_head; // written by the interrupt
static volatile uint32_t rx_tail;
static volatile bool rx_stopped;

bool console_rx_room(void) {
    // One slot is kept for an interrupt character that comes while the ring is full.
    bool room = rx_head - rx_tail < RX_SIZE;
    rx_stopped = !room;
    return room;
}

void console_rx(uint8_t c) {
    if (c == mp_interrupt_char) {
        mp_sched_keyboard_interrupt();
    } else {
        rx_buf[rx_head % RX_SIZE] = c;
        rx_head++;
    }
    port_event();
}

static int console_getc(void) {
    if (rx_head == rx_tail) {
        return -1;
    }
    uint8_t c = rx_buf[rx_tail % RX_SIZE];
    rx_tail++;
    if (rx_stopped && rx_head - rx_tail < RX_SIZE / 2) {
        rx_stopped = false;
        machine_console_rx_resume();
    }
    return c;
}

int mp_hal_stdin_rx_chr(void) {
    for (;;) {
        int c = console_getc();
        if (c >= 0) {
            return c;
        }
        mp_event_wait_indefinite();
    }
}

mp_uint_t mp_hal_stdout_tx_strn(const char *str, size_t len) {
    machine_console_write((const uint8_t *)str, len);
    return len;
}

uintptr_t mp_hal_stdio_poll(uintptr_t poll_flags) {
    uintptr_t ret = poll_flags & MP_STREAM_POLL_WR;
    if ((poll_flags & MP_STREAM_POLL_RD) && rx_head != rx_tail) {
        ret |= MP_STREAM_POLL_RD;
    }
    return ret;
}
