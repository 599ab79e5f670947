// netconn: lwIP connections without copies for MicroPython. Parts shared by the module's files.
//
// Contexts. "Thread" is Python code. "lwIP" is wherever the port runs lwIP: an interrupt (stm32, rp2) or
// the thread itself. lwIP's callbacks here allocate nothing, raise nothing and print nothing; every
// call into lwIP from the thread holds MICROPY_PY_LWIP_ENTER..EXIT, in which nothing is raised either.
#ifndef NETCONN_NETCONN_H
#define NETCONN_NETCONN_H

#include "py/mperrno.h"
#include "py/mphal.h"
#include "py/runtime.h"
#include "py/stream.h"

#include "lwip/opt.h"
#include "lwip/pbuf.h"
#include "lwip/tcp.h"
#include "lwip/udp.h"

#ifndef MICROPY_PY_LWIP_ENTER
#define MICROPY_PY_LWIP_ENTER
#define MICROPY_PY_LWIP_REENTER
#define MICROPY_PY_LWIP_EXIT
#endif

// Values of lwIP's lwip/api.h, which ports without LWIP_NETCONN cannot include.
#define NC_NOCOPY           (0x00)
#define NC_COPY             (0x01)
#define NC_MORE             (0x02)
#define NC_TCP              (0x10)
#define NC_UDP              (0x20)

// Writes below this are copied: a reference costs a slot, two pbufs and their bookkeeping.
#ifndef NETCONN_COPY_BELOW
#define NETCONN_COPY_BELOW  (512)
#endif
// One slot for each write in flight that refers to another object than the write before it.
// When they are all taken, the write is copied: small writes never wait for a slot.
#ifndef NETCONN_REFS
#define NETCONN_REFS        (32) // a power of two
#endif
#ifndef NETCONN_BACKLOG_MAX
#define NETCONN_BACKLOG_MAX (8)
#endif
// After close() with data in flight: so long until the connection is aborted, in units of 0.5 s.
#ifndef NETCONN_LINGER
#define NETCONN_LINGER      (20)
#endif

typedef struct _nc_ref_t {
    mp_obj_t owner;         // the object that the caller passed
    const void *base;       // head of its memory: what the collector recognises
    uint32_t end;           // position in the stream after its last byte
} nc_ref_t;

typedef struct _nc_dgram_t {
    struct pbuf *p;
    ip_addr_t addr;
    uint16_t port;
} nc_dgram_t;

// A connection that lwIP knows and Python has not accepted yet.
typedef struct _nc_pending_t {
    struct tcp_pcb *volatile pcb;
    struct pbuf *rx;
    bool eof;
} nc_pending_t;

enum { NC_NEW, NC_LISTENING, NC_CONNECTING, NC_CONNECTED, NC_CLOSED };

// The control block: what lwIP's callbacks point at. It is reachable from a root pointer as long as lwIP
// holds it, whatever becomes of the Python object; its finaliser (only at a soft reset, then) aborts.
typedef struct _nc_t {
    mp_obj_base_t base;
    struct _nc_t *next;
    union {
        struct tcp_pcb *tcp;
        struct udp_pcb *udp;
    } volatile pcb;
    uint8_t kind;                   // NC_TCP or NC_UDP
    volatile uint8_t state;
    volatile int8_t err;            // err_t of the failure, ERR_OK while there was none
    volatile bool eof;              // the peer sends nothing more
    volatile bool wait_sent;        // out of lwIP memory: nothing goes until an acknowledgment frees some
    bool lingering;                 // closed by Python, data still in flight
    bool draining;                  // closed by Python, the pump still has credit: no FIN yet
    bool tx_shut;

    volatile uint32_t tx_queued;    // bytes given to lwIP, modulo 2^32
    volatile uint32_t tx_acked;
    volatile uint32_t errmem;       // times that lwIP had no memory for a write
    nc_ref_t refs[NETCONN_REFS];
    volatile uint16_t ref_head;     // next to be written; indices run free
    volatile uint16_t ref_tail;

    struct pbuf *volatile rx_head;  // received and not yet taken: linked by next, tot_len not kept
    struct pbuf *volatile rx_tail;
    struct pbuf *rx_cur;            // taken from the queue by the thread, partly read
    uint16_t rx_off;

    nc_dgram_t *dgrams;             // UDP: queue of `depth` datagrams
    uint8_t depth;
    volatile uint8_t dgram_get;
    volatile uint8_t dgram_put;
    volatile uint8_t dgram_count;
    volatile uint32_t rx_dropped;   // datagrams that found the queue full

    nc_pending_t *pending;          // a listener's queue
    uint8_t backlog;
    uint8_t pending_get;
    volatile uint8_t pending_put;

    // pump
    const uint8_t *pump_buf;
    mp_obj_t pump_owner;
    volatile uint32_t pump_credit;  // bytes still to be handed to lwIP
    uint32_t pump_chunk;
    volatile bool sinking;
    volatile uint32_t sunk;         // bytes received and thrown away, not yet reported
} nc_t;

// What Python holds. Its finaliser closes the control block as close() does.
typedef struct _netconn_obj_t {
    mp_obj_base_t base;
    nc_t *nc;
    mp_int_t timeout_ms;            // -1: wait for ever; 0: never wait
    uint16_t flags;                 // of write() without flags
    uint16_t header;                // UDP: bytes that write() copies; the rest is referred to
} netconn_obj_t;

typedef struct _netbuf_obj_t {
    mp_obj_base_t base;
    struct pbuf *p;                 // the whole chain, owned
    struct pbuf *cur;               // the part that the buffer protocol shows
    ip_addr_t addr;
    uint16_t port;
} netbuf_obj_t;

extern const mp_obj_type_t netconn_type;
extern const mp_obj_type_t netbuf_type;
extern const mp_obj_type_t nc_block_type;

// --- netconn.c ---
int nc_errno(int8_t err);
nc_t *nc_new(int kind, int depth, int backlog);
void nc_reap(void);
void nc_check(nc_t *c);                         // raises what the connection died of
typedef struct _nc_wait_t {
    mp_uint_t start;
    mp_int_t timeout_ms;
} nc_wait_t;
static inline nc_wait_t nc_wait_begin(mp_int_t timeout_ms) {
    nc_wait_t w = { mp_hal_ticks_ms(), timeout_ms };
    return w;
}
// Wait for the next event. 0, or an errno: EAGAIN (must not wait) or ETIMEDOUT. May raise (Ctrl-C).
int nc_wait(const nc_wait_t *w);
mp_obj_t nc_addr_tuple(const ip_addr_t *addr, uint16_t port);
uint16_t nc_parse_addr(mp_obj_t tuple, ip_addr_t *addr);

// --- nc_tcp.c ---
void nc_tcp_attach(nc_t *c, struct tcp_pcb *pcb);
// Bytes taken, or MP_STREAM_ERROR and *errcode. `owner` is kept until its bytes are acknowledged.
mp_uint_t nc_tcp_write(nc_t *c, mp_obj_t owner, const void *base, const uint8_t *buf, size_t len,
    unsigned flags, mp_int_t timeout_ms, int *errcode);
mp_uint_t nc_tcp_read(nc_t *c, uint8_t *buf, size_t len, mp_int_t timeout_ms, int *errcode);
mp_uint_t nc_tcp_recv(nc_t *c, netbuf_obj_t *nb, mp_int_t timeout_ms, int *errcode);
void nc_tcp_close(nc_t *c, bool abort);
err_t nc_tcp_accept_cb(void *arg, struct tcp_pcb *pcb, err_t err);
bool nc_tcp_writable(nc_t *c);
void nc_pump_fill(nc_t *c);
// A piece of the stream to lwIP, inside the lock. Returns bytes taken; 0 and *err when none.
size_t nc_tcp_put(nc_t *c, mp_obj_t owner, const void *base, const uint8_t *buf, size_t len, unsigned flags, err_t *err);

// --- nc_udp.c ---
void nc_udp_recv_cb(void *arg, struct udp_pcb *pcb, struct pbuf *p, const ip_addr_t *addr, u16_t port);
int nc_udp_send(nc_t *c, mp_obj_t owner, const uint8_t *buf, size_t len, size_t header,
    const ip_addr_t *addr, uint16_t port);
mp_uint_t nc_udp_recv(nc_t *c, netbuf_obj_t *nb, mp_int_t timeout_ms, int *errcode);
void nc_udp_close(nc_t *c);

// --- nc_netbuf.c ---
void netbuf_release(netbuf_obj_t *nb);          // inside the lock

#endif
