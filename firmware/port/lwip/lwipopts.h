// lwIP options of the bench port: MicroPython's common set, over which the chosen profile is laid.
#ifndef PORT_LWIPOPTS_H
#define PORT_LWIPOPTS_H

// Written from profiles/<PROFILE>.toml and the machine's limits by tools/lwip_profile.py. It sets
// MEM_SIZE, which switches off the TCP block of MicroPython's common header.
#include "lwip_profile.h"
#include "machine_config.h"

#define LWIP_IPV6                       0
#define LWIP_RAND()                     port_random_u32()
#define LWIP_NETIF_LINK_CALLBACK        0
#define LWIP_DHCP_DOES_ACD_CHECK        0
#define DHCP_DOES_ARP_CHECK             0 // the name of the same in lwIP 2.1
#ifdef MACHINE_ETH_PAD_SIZE
#define ETH_PAD_SIZE                    MACHINE_ETH_PAD_SIZE
#endif

// A pbuf that refers to the Python heap must not wait in the ARP queue past its connection: copy it
// there (lwIP itself does so only for PBUF_REF, tcp_write() without COPY makes PBUF_ROM).
#define PBUF_NEEDS_COPY(p) (((p)->type_internal & PBUF_TYPE_FLAG_STRUCT_DATA_CONTIGUOUS) == 0)

#ifndef PORT_LWIP_C_CHKSUM
#include "chksum.h"
#define LWIP_CHKSUM                     port_chksum
#endif

#include "extmod/lwip-include/lwipopts_common.h"

#undef LWIP_DHCP_DOES_ACD_CHECK
#define LWIP_DHCP_DOES_ACD_CHECK        0
#undef LWIP_STATS
#define LWIP_STATS                      1
#define MIB2_STATS                      1
#define LWIP_STATS_LARGE                1
#undef LWIP_MDNS_RESPONDER
#define LWIP_MDNS_RESPONDER             0

extern uint32_t port_random_u32(void);

#endif
