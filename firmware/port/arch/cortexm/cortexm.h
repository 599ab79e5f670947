// Cortex-M system registers that machines share (Armv7-M Architecture Reference Manual, B3.2).
#ifndef PORT_CORTEXM_H
#define PORT_CORTEXM_H

#include <stdint.h>

#define SYST_CSR    (*(volatile uint32_t *)0xe000e010)
#define SYST_RVR    (*(volatile uint32_t *)0xe000e014)
#define SYST_CVR    (*(volatile uint32_t *)0xe000e018)
#define NVIC_ISER(n) (((volatile uint32_t *)0xe000e100)[n])
#define NVIC_ICER(n) (((volatile uint32_t *)0xe000e180)[n])
#define NVIC_IPR(irq) (((volatile uint8_t *)0xe000e400)[irq])
#define SCB_AIRCR   (*(volatile uint32_t *)0xe000ed0c)
#define SCB_CCR     (*(volatile uint32_t *)0xe000ed14)
#define SCB_SHPR(n) (((volatile uint8_t *)0xe000ed18)[(n) - 4]) // exception number 4..15
#define SCB_SHCSR   (*(volatile uint32_t *)0xe000ed24)
#define SCB_CFSR    (*(volatile uint32_t *)0xe000ed28)
#define SCB_BFAR    (*(volatile uint32_t *)0xe000ed38)
#define SCB_CPACR   (*(volatile uint32_t *)0xe000ed88)

void cortexm_init(uint32_t cpu_hz);         // FPU, priorities, 1 kHz SysTick
void cortexm_irq_enable(unsigned irq, uint8_t priority);

#endif
