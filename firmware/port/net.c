// When lwIP runs. The MAC's interrupt masks itself and calls net_pend(); lwIP then runs either as a
// task (a scheduler node, every wait, every bytecode loop) or in a software interrupt.
//
// "task" is the default because extmod/modlwip.c of MicroPython 1.25 calls tcp_new(), tcp_bind(),
// udp_new() and others without lwIP's lock: an lwIP that runs in an interrupt may meet its own
// lists half changed. "irq" is what upstream's stm32 port does, for comparison.
#include "py/mphal.h"
#include "py/mperrno.h"
#include "py/runtime.h"

#include "lwip/dhcp.h"
#include "lwip/init.h"
#include "lwip/etharp.h"
#include "lwip/tcp.h"
#include "lwip/timeouts.h"
#include "netif/ethernet.h"

#include "extmod/modnetwork.h"
#include "mac.h"
#include "net.h"

#define RX_BUDGET (16)       // frames in one service before Python gets its turn
#define TIMER_PERIOD_MS (10)

struct netif net_netif;
volatile net_load_t net_load;
uint32_t net_tcp_write_errmem;
uint32_t port_lwip_asserts;

static volatile bool pending;
static volatile bool timers_due;
static bool softirq;
static bool running;
static bool in_service;
static mp_sched_node_t sched_node;

u32_t sys_now(void) {
    return mp_hal_ticks_ms();
}

// Counts what modlwip hides: each ERR_MEM of tcp_write() costs a socket 50 ms of sleep.
err_t __real_tcp_write(struct tcp_pcb *pcb, const void *data, u16_t len, u8_t flags);
err_t __wrap_tcp_write(struct tcp_pcb *pcb, const void *data, u16_t len, u8_t flags) {
    err_t err = __real_tcp_write(pcb, data, len, flags);
    if (err == ERR_MEM) {
        net_tcp_write_errmem++;
    }
    return err;
}

static void net_service(void) {
    if (!running) {
        pending = timers_due = false; // an interrupt from before LAN.active(True)
        return;
    }
    if (in_service) {
        return;
    }
    if (machine_softirq_locked()) {
        net_load.lock_errors++;
        return;
    }
    in_service = true;
    net_load.services++;
    pending = false;
    unsigned n = mac_poll(&net_netif, RX_BUDGET);
    if (mac_link_changed()) {
        if (mac_link()) {
            netif_set_link_up(&net_netif);
        } else {
            netif_set_link_down(&net_netif);
        }
    }
    if (timers_due) {
        timers_due = false;
        sys_check_timeouts();
    }
    in_service = false;
    if (n == RX_BUDGET) {
        // More is waiting, but a sender that is always ready must not starve Python: go on at the next
        // wait or tick. (The scheduler runs nodes until there is none: to pend here would not leave it.)
        pending = true;
    } else {
        mac_irq_unmask();
    }
}

static void service_node(mp_sched_node_t *node) {
    (void)node;
    net_event_hook();
}

// Task context: between bytecodes (through the node), and before every wait.
void net_event_hook(void) {
    if (!softirq && (pending || timers_due)) {
        net_service();
        port_event();
    }
}

void net_softirq(void) {
    if (softirq) {
        net_service();
        port_event();
    }
}

void net_pend(void) {
    pending = true;
    port_event();
    if (softirq) {
        machine_softirq_pend();
    } else {
        mp_sched_schedule_node(&sched_node, service_node);
    }
}

void port_tick(void) {
    static uint32_t count;
    if (!running) {
        return;
    }
    if (++count % TIMER_PERIOD_MS == 0) {
        timers_due = true;
    }
    if (timers_due || pending) {
        if (softirq) {
            machine_softirq_pend();
        } else {
            mp_sched_schedule_node(&sched_node, service_node);
        }
    }
}

void net_set_softirq(bool on) {
    MICROPY_PY_LWIP_ENTER
    softirq = on;
    MICROPY_PY_LWIP_EXIT
    if (running) {
        net_pend();
    }
}

bool net_get_softirq(void) {
    return softirq;
}

static err_t netif_setup(struct netif *netif) {
    netif->linkoutput = mac_output;
    netif->output = etharp_output;
    netif->mtu = 1500;
    netif->name[0] = 'e';
    netif->name[1] = '0';
    netif->hwaddr_len = ETH_HWADDR_LEN;
    netif->flags = NETIF_FLAG_BROADCAST | NETIF_FLAG_ETHARP | NETIF_FLAG_ETHERNET | NETIF_FLAG_IGMP;
    return mac_init(netif) == 0 ? ERR_OK : ERR_IF;
}

void net_init(void) {
    // Once per power-up: lwIP's timeout list is only ever reset by clearing .bss.
    lwip_init();
    ip_addr_t any;
    ip_addr_set_any(false, &any);
    if (netif_add(&net_netif, ip_2_ip4(&any), ip_2_ip4(&any), ip_2_ip4(&any), NULL, netif_setup, ethernet_input) == NULL) {
        return; // LAN() reports it: the interface has no name then
    }
    netif_set_hostname(&net_netif, mod_network_hostname_data);
    netif_set_default(&net_netif);
}

// Returns 0 or a negative errno.
int net_start(void) {
    if (net_netif.linkoutput == NULL) {
        return -MP_ENODEV;
    }
    if (!running) {
        MICROPY_PY_LWIP_ENTER
        mac_start();
        netif_set_up(&net_netif);
        if (mac_link()) {
            netif_set_link_up(&net_netif);
        } else {
            netif_set_link_down(&net_netif);
        }
        running = true;
        mac_irq_unmask();
        if (ip4_addr_isany(netif_ip4_addr(&net_netif)) && netif_dhcp_data(&net_netif) == NULL) {
            dhcp_start(&net_netif);
        }
        MICROPY_PY_LWIP_EXIT
    }
    return 0;
}

void net_stop(void) {
    if (running) {
        MICROPY_PY_LWIP_ENTER
        mac_irq_mask();
        running = false;
        netif_set_link_down(&net_netif);
        netif_set_down(&net_netif);
        mac_stop();
        MICROPY_PY_LWIP_EXIT
    }
}

bool net_active(void) {
    return running;
}
