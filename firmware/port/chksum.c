// RFC 1071 one's complement sum over 32-bit words, 64 bytes in each turn of the loop.
// Arm only: `ldm` loads eight words in one instruction and `adcs` keeps the carry between them.
// Elsewhere a plain loop. tests/port compares the two on every alignment and length.
#include "chksum.h"

static uint32_t fold(uint32_t sum) {
    sum = (sum & 0xffff) + (sum >> 16);
    return (sum & 0xffff) + (sum >> 16);
}

#if defined(__arm__)

static uint32_t add_words(uint32_t sum, const uint32_t **data, uint32_t turns) {
    const uint32_t *p = *data;
    // subs would destroy the carry, so the carry is added in at the end of each turn.
    __asm volatile (
        "1:                          \n"
        "ldmia %[p]!, {r4-r6, r8-r12}\n"
        "adds %[s], %[s], r4         \n"
        "adcs %[s], %[s], r5         \n"
        "adcs %[s], %[s], r6         \n"
        "adcs %[s], %[s], r8         \n"
        "adcs %[s], %[s], r9         \n"
        "adcs %[s], %[s], r10        \n"
        "adcs %[s], %[s], r11        \n"
        "adcs %[s], %[s], r12        \n"
        "ldmia %[p]!, {r4-r6, r8-r12}\n"
        "adcs %[s], %[s], r4         \n"
        "adcs %[s], %[s], r5         \n"
        "adcs %[s], %[s], r6         \n"
        "adcs %[s], %[s], r8         \n"
        "adcs %[s], %[s], r9         \n"
        "adcs %[s], %[s], r10        \n"
        "adcs %[s], %[s], r11        \n"
        "adcs %[s], %[s], r12        \n"
        "adc  %[s], %[s], #0         \n"
        "subs %[n], %[n], #1         \n"
        "bne 1b                      \n"
        : [s] "+r" (sum), [p] "+r" (p), [n] "+r" (turns)
        :
        : "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "cc", "memory");
    *data = p;
    return sum;
}

#endif

uint16_t port_chksum(const void *data, int len) {
    const uint8_t *p = data;
    uint32_t sum = 0;
    // An odd start shifts every byte to the other half: swap the result at the end.
    int odd = (uintptr_t)p & 1;
    if (odd && len > 0) {
        sum = (uint32_t)*p++ << 8;
        len--;
    }
    if (((uintptr_t)p & 2) && len >= 2) {
        sum += *(const uint16_t *)p;
        p += 2;
        len -= 2;
    }
    #if defined(__arm__)
    if (len >= 64) {
        const uint32_t *words = (const uint32_t *)p;
        sum = add_words(sum, &words, (uint32_t)len >> 6);
        p = (const uint8_t *)words;
        len &= 63;
    }
    #endif
    uint64_t acc = sum;
    while (len >= 4) {
        acc += *(const uint32_t *)p;
        p += 4;
        len -= 4;
    }
    if (len >= 2) {
        acc += *(const uint16_t *)p;
        p += 2;
        len -= 2;
    }
    if (len > 0) {
        acc += *p;
    }
    acc = (acc & 0xffffffff) + (acc >> 32);
    acc = (acc & 0xffffffff) + (acc >> 32);
    sum = fold((uint32_t)acc);
    if (odd) {
        sum = ((sum & 0xff) << 8) | (sum >> 8);
    }
    return (uint16_t)sum;
}
