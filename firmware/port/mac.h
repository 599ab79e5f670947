// What an Ethernet MAC driver implements. One MAC per machine; all calls with lwIP locked or from
// net_service(), except the interrupt, which masks itself and calls net_pend().
#ifndef PORT_MAC_H
#define PORT_MAC_H

#include <stdbool.h>
#include <stdint.h>

#include "lwip/err.h"
#include "lwip/netif.h"

typedef struct _mac_stats_t {
    uint32_t rx_frames;
    uint32_t rx_bytes;
    uint32_t rx_no_pbuf;     // dropped: PBUF_POOL empty
    uint32_t rx_errors;      // CRC, length, overrun as far as the MAC tells
    uint32_t tx_frames;
    uint32_t tx_bytes;
    uint32_t tx_busy;        // frames that had to wait for room in the MAC
    uint32_t irqs;
} mac_stats_t;
extern mac_stats_t mac_stats;

// Reset the MAC, fill netif->hwaddr. Returns 0 or a negative errno.
int mac_init(struct netif *netif);
void mac_start(void);
void mac_stop(void);
bool mac_link(void);
// netif->linkoutput: takes the chain as it is; pbufs kept after the return are pbuf_ref()ed.
err_t mac_output(struct netif *netif, struct pbuf *p);
// Hand at most `budget` received frames to netif->input, reclaim what was sent; frames handled.
unsigned mac_poll(struct netif *netif, unsigned budget);
// Unmask the MAC's interrupt; it must fire at once when frames are waiting.
void mac_irq_unmask(void);
void mac_irq_mask(void);
// True when the driver learned of a PHY change since the last call.
bool mac_link_changed(void);

// Switches: set or get by name. Returns false for a switch that this MAC lacks (the caller raises).
bool mac_config_get(const char *name, int *value);
bool mac_config_set(const char *name, int value);

// net.c
void net_pend(void);             // from the MAC's interrupt, after it masked itself

#endif
