// What every Cortex-M machine shares: start-up, SysTick, PendSV, faults, sleep, reset.
#include <string.h>

#include "cortexm.h"
#include "machine.h"

#define RESET_MAGIC (0x52535421u)

extern uint32_t _data_load, _data_start, _data_end, _bss_start, _bss_end;
extern uint8_t _stack_top;
int main(void);

static __attribute__((section(".noinit"))) uint32_t reset_magic;
static bool was_hard;

void __attribute__((noreturn)) Reset_Handler(void) {
    SCB_CPACR |= 0xfu << 20; // CP10 and CP11: the FPU, before any float instruction
    __asm volatile ("dsb\n isb");
    memcpy(&_data_start, &_data_load, (uintptr_t)&_data_end - (uintptr_t)&_data_start);
    memset(&_bss_start, 0, (uintptr_t)&_bss_end - (uintptr_t)&_bss_start);
    was_hard = reset_magic == RESET_MAGIC;
    reset_magic = 0;
    main();
    machine_hard_reset();
}

void cortexm_init(uint32_t cpu_hz) {
    SCB_CCR |= 1u << 9; // STKALIGN
    SCB_SHPR(14) = SOFTIRQ_PRIORITY; // PendSV
    SCB_SHPR(15) = 0x20; // SysTick
    SYST_RVR = cpu_hz / 1000 - 1;
    SYST_CVR = 0;
    SYST_CSR = 7;
}

void cortexm_irq_enable(unsigned irq, uint8_t priority) {
    NVIC_IPR(irq) = priority;
    NVIC_ISER(irq / 32) = 1u << (irq % 32);
}

void PendSV_Handler(void) {
    net_softirq();
}

// Sleep; a pending interrupt wakes WFI even while PRIMASK holds it off, so none is lost.
void machine_wait(void) {
    __asm volatile ("dsb\n wfi\n isb" : : : "memory");
}

void machine_hard_reset(void) {
    reset_magic = RESET_MAGIC;
    __asm volatile ("dsb" : : : "memory");
    SCB_AIRCR = 0x05fa0004; // VECTKEY, SYSRESETREQ
    for (;;) {
    }
}

bool machine_reset_cause_was_hard(void) {
    return was_hard;
}

static void put_hex(const char *name, uint32_t value) {
    char text[24];
    size_t n = strlen(name);
    memcpy(text, name, n);
    for (int i = 28; i >= 0; i -= 4) {
        text[n++] = "0123456789abcdef"[(value >> i) & 15];
    }
    text[n++] = ' ';
    machine_console_write((const uint8_t *)text, n);
}

void __attribute__((used)) fault_report(const uint32_t *frame, uint32_t lr) {
    machine_console_write((const uint8_t *)"\r\nFAULT ", 8);
    put_hex("pc=", frame[6]);
    put_hex("lr=", frame[5]);
    put_hex("r0=", frame[0]);
    put_hex("cfsr=", SCB_CFSR);
    put_hex("bfar=", SCB_BFAR);
    put_hex("exc=", lr);
    port_fatal("hard fault");
}

void __attribute__((naked)) Fault_Handler(void) {
    __asm volatile (
        "tst lr, #4       \n"
        "ite eq           \n"
        "mrseq r0, msp    \n"
        "mrsne r0, psp    \n"
        "mov r1, lr       \n"
        "b fault_report   \n");
}

void Default_Handler(void) {
    port_fatal("unexpected interrupt");
}
