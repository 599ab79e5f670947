// The hardware layer that MicroPython's core and extmod expect, over machine.h.
#ifndef PORT_MPHALPORT_H
#define PORT_MPHALPORT_H

#include "machine.h"
#include "shared/runtime/interrupt_char.h"

#define MICROPY_BEGIN_ATOMIC_SECTION()      machine_irq_disable()
#define MICROPY_END_ATOMIC_SECTION(state)   machine_irq_restore(state)

// lwIP's lock. ENTER declares a local, as on stm32: once per scope, EXIT in the same scope.
#define MICROPY_PY_LWIP_ENTER   uint32_t lwip_lock_state = machine_softirq_lock();
#define MICROPY_PY_LWIP_REENTER lwip_lock_state = machine_softirq_lock();
#define MICROPY_PY_LWIP_EXIT    machine_softirq_unlock(lwip_lock_state);

void net_event_hook(void);
void port_wait_for_event(mp_uint_t timeout_ms);
#define MICROPY_INTERNAL_EVENT_HOOK         net_event_hook()
#define MICROPY_INTERNAL_WFE(timeout_ms)    port_wait_for_event(timeout_ms)

uint32_t port_random_u32(void);
uint64_t mp_hal_time_ns(void);

// lwIP reaches this header through its lock macros before MicroPython's types are there.
#include "py/mpconfig.h"
static inline mp_uint_t mp_hal_ticks_us(void) {
    return (mp_uint_t)(machine_time_ticks() / MACHINE_TICKS_PER_US);
}
mp_uint_t mp_hal_ticks_ms(void);
static inline mp_uint_t mp_hal_ticks_cpu(void) {
    return (mp_uint_t)machine_time_ticks();
}
void mp_hal_set_interrupt_char(int c);

#endif
