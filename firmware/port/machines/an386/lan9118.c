// SMSC LAN9118 Ethernet controller (data sheet rev. 1.5; section numbers below are its own), as QEMU models it.
// Programmed I/O through FIFOs: the chip has no bus mastering, so the CPU moves each word. The FIFO
// ports are aliased over 32 bytes (5.3.1), made for bursts: ldm/stm move eight words at a time.
#include "py/mperrno.h"

#include "lwip/etharp.h"
#include "lwip/pbuf.h"
#include "lwip/stats.h"
#include "lwip/snmp.h"

#include "cortexm.h"
#include "mac.h"
#include "machine.h"

#define BASE            (0x40200000u)
#define REG(offset)     (*(volatile uint32_t *)(BASE + (offset)))
#define RX_FIFO         REG(0x00)
#define TX_FIFO         REG(0x20)
#define RX_STATUS       REG(0x40)
#define TX_STATUS       REG(0x48)
#define IRQ_CFG         REG(0x54)
#define INT_STS         REG(0x58)
#define INT_EN          REG(0x5c)
#define BYTE_TEST       REG(0x64)
#define FIFO_INT        REG(0x68)
#define RX_CFG          REG(0x6c)
#define TX_CFG          REG(0x70)
#define HW_CFG          REG(0x74)
#define RX_DP_CTRL      REG(0x78)
#define RX_FIFO_INF     REG(0x7c)
#define TX_FIFO_INF     REG(0x80)
#define MAC_CSR_CMD     REG(0xa4)
#define MAC_CSR_DATA    REG(0xa8)

#define INT_RSFL        (1u << 3)   // RX status FIFO above its level
#define INT_PHY         (1u << 18)
#define MAC_CR          (1)
#define MAC_ADDRH       (2)
#define MAC_ADDRL       (3)
#define MAC_MII_ACC     (6)
#define MAC_MII_DATA    (7)
#define MAC_CR_FDPX     (1u << 20)
#define MAC_CR_TXEN     (1u << 3)
#define MAC_CR_RXEN     (1u << 2)
#define IRQ_ETHERNET    (13)
#define PHY_BMSR        (1)
#define PHY_INT_SOURCE  (29)
#define PHY_INT_MASK    (30)
#define PHY_INT_LINK    ((1u << 4) | (1u << 6)) // link down, auto-negotiation complete

mac_stats_t mac_stats;
static volatile bool link_event;

static uint32_t csr_read(uint32_t reg) {
    MAC_CSR_CMD = 1u << 31 | 1u << 30 | reg;
    while (MAC_CSR_CMD & 1u << 31) {
    }
    return MAC_CSR_DATA;
}

static void csr_write(uint32_t reg, uint32_t value) {
    MAC_CSR_DATA = value;
    MAC_CSR_CMD = 1u << 31 | reg;
    while (MAC_CSR_CMD & 1u << 31) {
    }
}

static uint32_t phy_read(uint32_t reg) {
    csr_write(MAC_MII_ACC, 1u << 11 | reg << 6 | 1);
    while (csr_read(MAC_MII_ACC) & 1) {
    }
    return csr_read(MAC_MII_DATA);
}

static void phy_write(uint32_t reg, uint32_t value) {
    csr_write(MAC_MII_DATA, value);
    csr_write(MAC_MII_ACC, 1u << 11 | reg << 6 | 2 | 1);
    while (csr_read(MAC_MII_ACC) & 1) {
    }
}

int mac_init(struct netif *netif) {
    if (BYTE_TEST != 0x87654321) {
        return -MP_ENODEV;
    }
    HW_CFG = 1; // SRST; self-clearing
    while (HW_CFG & 1) {
    }
    HW_CFG = 1u << 20 | 5u << 16; // must be one; TX FIFO 5 KiB, the rest receives
    INT_EN = 0;
    INT_STS = 0xffffffff;
    IRQ_CFG = 0x111; // enabled, active high, push-pull
    FIFO_INT = 0; // RSFL as soon as one status is there
    RX_CFG = MACHINE_ETH_PAD_SIZE << 8;
    uint32_t low = csr_read(MAC_ADDRL);
    uint32_t high = csr_read(MAC_ADDRH);
    for (int i = 0; i < 4; i++) {
        netif->hwaddr[i] = (uint8_t)(low >> (8 * i));
    }
    netif->hwaddr[4] = (uint8_t)high;
    netif->hwaddr[5] = (uint8_t)(high >> 8);
    phy_write(PHY_INT_MASK, PHY_INT_LINK);
    cortexm_irq_enable(IRQ_ETHERNET, 0x80); // not before IRQ_CFG: the line is inverted until then
    return 0;
}

void mac_start(void) {
    TX_CFG = 1u << 1; // TX_ON
    csr_write(MAC_CR, MAC_CR_FDPX | MAC_CR_TXEN | MAC_CR_RXEN);
    link_event = true;
}

void mac_stop(void) {
    csr_write(MAC_CR, MAC_CR_FDPX);
    INT_EN = 0;
}

bool mac_link(void) {
    return phy_read(PHY_BMSR) & 1u << 2;
}

bool mac_link_changed(void) {
    bool changed = link_event;
    link_event = false;
    return changed;
}

void mac_irq_mask(void) {
    INT_EN = 0;
}

void mac_irq_unmask(void) {
    // RSFL is a level: a frame that came meanwhile raises the interrupt at once.
    INT_STS = INT_RSFL;
    INT_EN = INT_RSFL | INT_PHY;
}

void ETH_Handler(void) {
    mac_stats.irqs++;
    if (INT_STS & INT_PHY) {
        phy_read(PHY_INT_SOURCE); // clears the cause
        INT_STS = INT_PHY;
        link_event = true;
    }
    INT_EN = 0;
    net_pend();
}

// Move `words` from memory to the TX FIFO. Eight at a time through the aliased ports.
static inline void fifo_write(const uint32_t *from, uint32_t words) {
    volatile uint32_t *fifo = &TX_FIFO;
    for (; words >= 8; words -= 8) {
        __asm volatile (
            "ldmia %0!, {r3-r6, r8-r11}\n"
            "stmia %1, {r3-r6, r8-r11}\n"
            : "+r" (from) : "r" (fifo) : "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "memory");
    }
    while (words--) {
        *fifo = *from++;
    }
}

static inline void fifo_read(uint32_t *to, uint32_t words) {
    volatile uint32_t *fifo = &RX_FIFO;
    for (; words >= 8; words -= 8) {
        __asm volatile (
            "ldmia %1, {r3-r6, r8-r11}\n"
            "stmia %0!, {r3-r6, r8-r11}\n"
            : "+r" (to) : "r" (fifo) : "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "memory");
    }
    while (words--) {
        *to++ = *fifo;
    }
}

// TX command words (3.12.2): the chip gathers buffers of any alignment and length into one frame.
static void send_buffer(const uint8_t *data, uint32_t len, uint32_t flags, uint32_t total) {
    uint32_t offset = (uintptr_t)data & 3;
    TX_FIFO = offset << 16 | flags | len;
    TX_FIFO = total;
    fifo_write((const uint32_t *)(data - offset), (offset + len + 3) / 4);
}

err_t mac_output(struct netif *netif, struct pbuf *p) {
    (void)netif;
    uint32_t total = p->tot_len - MACHINE_ETH_PAD_SIZE;
    uint32_t need = total + 16 * pbuf_clen(p);
    while (TX_FIFO_INF >> 16 & 0xff) {
        (void)TX_STATUS; // the status FIFO must be drained, or the chip stops
    }
    if ((TX_FIFO_INF & 0xffff) < need) {
        mac_stats.tx_busy++;
        for (uint32_t turns = 0; (TX_FIFO_INF & 0xffff) < need; turns++) {
            if (turns > 100000) {
                LINK_STATS_INC(link.drop);
                return ERR_IF;
            }
        }
    }
    uint32_t skip = MACHINE_ETH_PAD_SIZE;
    uint32_t first = 1u << 13;
    for (struct pbuf *q = p; q != NULL; q = q->next) {
        uint32_t len = q->len - skip;
        uint32_t last = q->tot_len == q->len ? 1u << 12 : 0;
        if (len > 0 || last) {
            send_buffer((const uint8_t *)q->payload + skip, len, first | last, total);
            first = 0;
        }
        skip = 0;
        if (last) {
            break;
        }
    }
    mac_stats.tx_frames++;
    mac_stats.tx_bytes += total;
    LINK_STATS_INC(link.xmit);
    return ERR_OK;
}

static void drop(uint32_t words) {
    if (words >= 4) {
        RX_DP_CTRL = 1u << 31; // fast-forward over the frame (3.13.1.1)
        while (RX_DP_CTRL & 1u << 31) {
        }
    } else {
        while (words--) {
            (void)RX_FIFO;
        }
    }
}

unsigned mac_poll(struct netif *netif, unsigned budget) {
    unsigned n = 0;
    while (n < budget && (RX_FIFO_INF >> 16 & 0xff) != 0) {
        uint32_t status = RX_STATUS;
        uint32_t len = status >> 16 & 0x3fff; // with the 4 bytes of CRC
        uint32_t words = (len + MACHINE_ETH_PAD_SIZE + 3) / 4;
        n++;
        if ((status & 1u << 15) || len < 18) {
            mac_stats.rx_errors++;
            LINK_STATS_INC(link.drop);
            drop(words);
            continue;
        }
        struct pbuf *p = pbuf_alloc(PBUF_RAW, (u16_t)(words * 4), PBUF_POOL);
        if (p == NULL) {
            mac_stats.rx_no_pbuf++;
            LINK_STATS_INC(link.memerr);
            LINK_STATS_INC(link.drop);
            drop(words);
            continue;
        }
        // A pool buffer of a profile with small buffers holds a part: every part but the last has
        // a length that is a multiple of four (MEM_ALIGNMENT).
        for (struct pbuf *q = p; q != NULL; q = q->next) {
            fifo_read(q->payload, q->len / 4);
        }
        pbuf_realloc(p, (u16_t)(len - 4 + MACHINE_ETH_PAD_SIZE));
        mac_stats.rx_frames++;
        mac_stats.rx_bytes += len - 4;
        LINK_STATS_INC(link.recv);
        if (netif->input(p, netif) != ERR_OK) {
            pbuf_free(p);
        }
    }
    return n;
}

// The LAN9118 has no descriptors, no checksum engine and no coalescing: no switches at all.
bool mac_config_get(const char *name, int *value) {
    (void)name;
    (void)value;
    return false;
}

bool mac_config_set(const char *name, int value) {
    (void)name;
    (void)value;
    return false;
}
