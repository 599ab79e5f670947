// Constants of the machine that the common code asks for.
#ifndef PORT_MACHINE_CONFIG_H
#define PORT_MACHINE_CONFIG_H

#define MACHINE_PLATFORM        "qemu-an386"
#define MICROPY_HW_MCU_NAME     "Cortex-M4F (QEMU mps2-an386)"
#define MACHINE_CPU_HZ          (25000000)
#define MACHINE_TICKS_PER_US    (25)    // FPGAIO COUNTER at 25 MHz
#define MACHINE_ETH_PAD_SIZE    (2)     // RX_CFG data offset 2: the IP header is word aligned
#define MACHINE_RAMDISK_SIZE    (1024 * 1024)
#define MACHINE_ROMFS_SIZE      (256 * 1024)

#define MICROPY_EMIT_THUMB              (1)
#define MICROPY_EMIT_INLINE_THUMB       (1)
#define MACHINE_CALLABLE(p)             ((void *)((mp_uint_t)(p) | 1))

#endif
