// Interrupt control: Cortex-M. Interrupts that may call into the port run above the software
// interrupt (PendSV, lowest priority), in which lwIP runs in "irq" service.
#ifndef PORT_ARCH_IRQ_H
#define PORT_ARCH_IRQ_H

#include <stdbool.h>
#include <stdint.h>

#define SOFTIRQ_PRIORITY (0xe0u)

static inline uint32_t machine_irq_disable(void) {
    uint32_t state;
    __asm volatile ("mrs %0, primask\n cpsid i" : "=r" (state) : : "memory");
    return state;
}

static inline void machine_irq_restore(uint32_t state) {
    __asm volatile ("msr primask, %0" : : "r" (state) : "memory");
}

// lwIP's lock: holds the software interrupt off, nothing else. Returns what unlock needs.
static inline uint32_t machine_softirq_lock(void) {
    uint32_t state;
    __asm volatile ("mrs %0, basepri" : "=r" (state) : : "memory");
    // basepri_max only ever raises the level, so a nested lock cannot lower it.
    __asm volatile ("msr basepri_max, %0" : : "r" (SOFTIRQ_PRIORITY) : "memory");
    return state;
}

static inline void machine_softirq_unlock(uint32_t state) {
    __asm volatile ("msr basepri, %0" : : "r" (state) : "memory");
}

static inline bool machine_softirq_locked(void) {
    uint32_t state;
    __asm volatile ("mrs %0, basepri" : "=r" (state));
    return state != 0;
}

static inline void machine_softirq_pend(void) {
    *(volatile uint32_t *)0xe000ed04 = 1u << 28; // ICSR.PENDSVSET, Armv7-M ARM B3.2.4
    __asm volatile ("dsb" : : : "memory");
}

#endif
