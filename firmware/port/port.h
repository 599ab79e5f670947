// Parts of the port that only the port's own files call.
#ifndef PORT_PORT_H
#define PORT_PORT_H

#include <stdint.h>

void port_random_init(void);
extern uint64_t port_epoch_us; // microseconds since the Epoch at tick 0

#endif
