// lwIP glue: when lwIP runs, and what is known about the CPU's load.
#ifndef PORT_NET_H
#define PORT_NET_H

#include <stdbool.h>
#include <stdint.h>

#include "lwip/netif.h"

extern struct netif net_netif;

void net_init(void);
int net_start(void);
void net_stop(void);
bool net_active(void);
// "task": lwIP runs between bytecodes and while waiting (upstream's unlocked calls are then safe).
// "irq": lwIP runs in a software interrupt of the lowest priority, as in upstream's stm32 port.
void net_set_softirq(bool on);
bool net_get_softirq(void);

typedef struct _net_load_t {
    uint64_t idle_ticks;     // time spent in machine_wait()
    uint32_t lock_errors;    // lwIP was to run inside its own lock: must stay 0
    uint32_t services;
} net_load_t;
extern volatile net_load_t net_load;
extern uint32_t net_tcp_write_errmem;

#endif
