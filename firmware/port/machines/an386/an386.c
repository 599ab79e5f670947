// QEMU mps2-an386: vectors, time base, console.
// Sources: Arm Application Note AN386 (memory map, interrupts), CMSDK TRM (APB UART).
#include "cortexm.h"
#include "machine.h"

#define UART0               ((volatile uint32_t *)0x40004000)
#define UART_DATA           (0x00 / 4)
#define UART_STATE          (0x04 / 4)
#define UART_CTRL           (0x08 / 4)
#define UART_INTCLEAR       (0x0c / 4)
#define UART_BAUDDIV        (0x10 / 4)
#define UART_STATE_TXFULL   (1u << 0)
#define UART_STATE_RXFULL   (1u << 1)
#define UART_CTRL_TXEN      (1u << 0)
#define UART_CTRL_RXEN      (1u << 1)
#define UART_CTRL_RXINT     (1u << 3)
#define UART_INT_RX         (1u << 1)

#define FPGAIO_COUNTER      (*(volatile uint32_t *)0x40028018)
#define FPGAIO_PRESCALE     (*(volatile uint32_t *)0x4002801c)

#define IRQ_UART0_RX        (0)

extern uint8_t _stack_top;
void Reset_Handler(void);
void Fault_Handler(void);
void Default_Handler(void);
void PendSV_Handler(void);
void SysTick_Handler(void);
void UART0_RX_Handler(void);
void ETH_Handler(void);

typedef void (*vector_t)(void);
__attribute__((section(".isr_vector"), used))
static const vector_t vectors[16 + 32] = {
    (vector_t)(uintptr_t)&_stack_top,
    Reset_Handler,
    [2] = Default_Handler, [3] = Fault_Handler, [4] = Fault_Handler, [5] = Fault_Handler, [6] = Fault_Handler,
    [11] = Default_Handler,
    [12] = Default_Handler,
    [14] = PendSV_Handler,
    [15] = SysTick_Handler,
    [16 ... 47] = Default_Handler,
    [16 + IRQ_UART0_RX] = UART0_RX_Handler,
    [16 + 13] = ETH_Handler,
};

static volatile uint32_t time_high;
static volatile uint32_t time_last;

// The counter wraps each 171 s; the tick interrupt looks at it a thousand times a second.
uint64_t machine_time_ticks(void) {
    uint32_t state = machine_irq_disable();
    uint32_t now = FPGAIO_COUNTER;
    if (now < time_last) {
        time_high++;
    }
    time_last = now;
    uint64_t ticks = (uint64_t)time_high << 32 | now;
    machine_irq_restore(state);
    return ticks;
}

void SysTick_Handler(void) {
    machine_time_ticks();
    port_tick();
}

void machine_init(void) {
    FPGAIO_PRESCALE = 0; // counts each cycle of 25 MHz
    time_last = FPGAIO_COUNTER;
    UART0[UART_BAUDDIV] = 25000000 / 115200;
    UART0[UART_CTRL] = UART_CTRL_TXEN | UART_CTRL_RXEN | UART_CTRL_RXINT;
    cortexm_init(MACHINE_CPU_HZ);
    cortexm_irq_enable(IRQ_UART0_RX, 0x40);
}

uint32_t machine_entropy(void) {
    return 0; // AN386 has no random number generator
}

void machine_console_write(const uint8_t *buf, size_t len) {
    while (len--) {
        while (UART0[UART_STATE] & UART_STATE_TXFULL) {
        }
        UART0[UART_DATA] = *buf++;
    }
}

// A full ring leaves the character in the UART, so QEMU holds the host back and nothing is lost.
void UART0_RX_Handler(void) {
    UART0[UART_INTCLEAR] = UART_INT_RX;
    while (UART0[UART_STATE] & UART_STATE_RXFULL) {
        if (!console_rx_room()) {
            NVIC_ICER(0) = 1u << IRQ_UART0_RX;
            return;
        }
        console_rx((uint8_t)UART0[UART_DATA]);
    }
}

void machine_console_rx_resume(void) {
    uint32_t state = machine_irq_disable();
    UART0_RX_Handler();
    NVIC_ISER(0) = 1u << IRQ_UART0_RX;
    machine_irq_restore(state);
}
