// Time, waiting, random numbers.
#include <string.h>

#include "py/mphal.h"
#include "py/runtime.h"
#include "shared/timeutils/timeutils.h"

#include "mac.h"
#include "net.h"
#include "port.h"

uint64_t port_epoch_us;
static volatile uint32_t event_count;
static uint32_t event_seen;
static uint32_t random_state;

void port_event(void) {
    event_count++;
}

mp_uint_t mp_hal_ticks_ms(void) {
    return (mp_uint_t)(machine_time_ticks() / (1000 * MACHINE_TICKS_PER_US));
}

uint64_t mp_hal_time_ns(void) {
    return (port_epoch_us + machine_time_ticks() / MACHINE_TICKS_PER_US) * 1000;
}

// Sleep until the next interrupt. An event that came since the last wait ends this one at once:
// mp_event_wait_ms() handles events first and then waits, so without the latch a frame that was
// handled there would sleep until the next tick.
void port_wait_for_event(mp_uint_t timeout_ms) {
    if (timeout_ms == 0) {
        return;
    }
    uint32_t state = machine_irq_disable();
    if (event_seen == event_count) {
        uint64_t start = machine_time_ticks();
        machine_wait();
        net_load.idle_ticks += machine_time_ticks() - start;
    }
    event_seen = event_count;
    machine_irq_restore(state);
}

void mp_hal_delay_ms(mp_uint_t ms) {
    uint64_t end = machine_time_ticks() + (uint64_t)ms * 1000 * MACHINE_TICKS_PER_US;
    do {
        mp_event_wait_ms(1);
    } while (machine_time_ticks() < end);
}

void mp_hal_delay_us(mp_uint_t us) {
    uint64_t end = machine_time_ticks() + (uint64_t)us * MACHINE_TICKS_PER_US;
    while (machine_time_ticks() < end) {
    }
}

// xorshift32: for protocol ports and tests, not for secrets. The seed mixes what differs between
// two starts: a counter that survives resets, the time base, hardware entropy where there is any.
uint32_t port_random_u32(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return random_state;
}

void port_random_init(void) {
    static __attribute__((section(".noinit"))) uint32_t starts;
    starts = starts * 1664525u + 1013904223u;
    random_state = starts ^ (uint32_t)machine_time_ticks() ^ machine_entropy();
    if (random_state == 0) {
        random_state = 1;
    }
    for (int i = 0; i < 8; i++) {
        port_random_u32();
    }
}
