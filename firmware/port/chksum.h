// The Internet checksum for lwIP (LWIP_CHKSUM), without the final complement.
#ifndef PORT_CHKSUM_H
#define PORT_CHKSUM_H

#include <stdint.h>

uint16_t port_chksum(const void *data, int len);

#endif
