// Compiler and platform glue of lwIP (MicroPython's own forces LWIP_CHKSUM_ALGORITHM 2).
#ifndef PORT_ARCH_CC_H
#define PORT_ARCH_CC_H

#include <stdint.h>

#ifndef BYTE_ORDER
#define BYTE_ORDER LITTLE_ENDIAN
#endif

#define LWIP_PLATFORM_DIAG(x)
// Counted, not fatal: closing a listening socket of modlwip 1.25 trips one by design.
extern uint32_t port_lwip_asserts;
#define LWIP_PLATFORM_ASSERT(x) do { port_lwip_asserts++; } while (0)

#define PACK_STRUCT_FIELD(x) x
#define PACK_STRUCT_STRUCT __attribute__((packed))
#define PACK_STRUCT_BEGIN
#define PACK_STRUCT_END

#endif
