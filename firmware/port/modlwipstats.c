// lwipstats: lwIP's statistics, the options it was built with, CPU load, MAC counters.
#include <string.h>

#include "py/gc.h"
#include "py/mphal.h"
#include "py/runtime.h"

#include "lwip/init.h"
#include "lwip/memp.h"
#include "lwip/opt.h"
#include "lwip/priv/tcp_priv.h"
#include "lwip/stats.h"
#include "lwip/udp.h"

#include "chksum.h"
#include "mac.h"
#include "net.h"

typedef struct _option_t {
    const char *name;
    mp_int_t value;
} option_t;

// Effective values, as the preprocessor left them: what a result must record.
#define OPTION(x) { #x, (mp_int_t)(x) }
static const option_t lwip_options[] = {
    OPTION(MEM_SIZE), OPTION(MEMP_NUM_PBUF), OPTION(MEMP_NUM_TCP_PCB), OPTION(MEMP_NUM_TCP_PCB_LISTEN),
    OPTION(MEMP_NUM_TCP_SEG), OPTION(MEMP_NUM_UDP_PCB), OPTION(PBUF_POOL_SIZE), OPTION(PBUF_POOL_BUFSIZE),
    OPTION(TCP_MSS), OPTION(TCP_WND), OPTION(TCP_SND_BUF), OPTION(TCP_SND_QUEUELEN), OPTION(TCP_QUEUE_OOSEQ),
    OPTION(TCP_OVERSIZE), OPTION(LWIP_WND_SCALE), OPTION(LWIP_CHECKSUM_ON_COPY), OPTION(LWIP_CHKSUM_ALGORITHM),
    OPTION(ETH_PAD_SIZE), OPTION(LWIP_IPV6), OPTION(ARP_QUEUEING), OPTION(IP_REASSEMBLY), OPTION(IP_FRAG),
};

static void store_int(mp_obj_t dict, const char *name, mp_int_t value) {
    mp_obj_dict_store(dict, MP_OBJ_NEW_QSTR(qstr_from_str(name)), mp_obj_new_int(value));
}

// profile() -> {"name", "lwip", "scaled": [...], option: value ...}
static mp_obj_t lwipstats_profile(void) {
    mp_obj_t dict = mp_obj_new_dict(4 + MP_ARRAY_SIZE(lwip_options));
    mp_obj_dict_store(dict, MP_OBJ_NEW_QSTR(MP_QSTR_name), mp_obj_new_str(PORT_LWIP_PROFILE, strlen(PORT_LWIP_PROFILE)));
    mp_obj_dict_store(dict, MP_OBJ_NEW_QSTR(MP_QSTR_lwip), mp_obj_new_str(LWIP_VERSION_STRING, strlen(LWIP_VERSION_STRING)));
    static const char *const scaled[] = { PORT_LWIP_SCALED NULL };
    mp_obj_t list = mp_obj_new_list(0, NULL);
    for (const char *const *text = scaled; *text != NULL; text++) {
        mp_obj_list_append(list, mp_obj_new_str(*text, strlen(*text)));
    }
    mp_obj_dict_store(dict, MP_OBJ_NEW_QSTR(MP_QSTR_scaled), list);
    for (size_t i = 0; i < MP_ARRAY_SIZE(lwip_options); i++) {
        store_int(dict, lwip_options[i].name, lwip_options[i].value);
    }
    return dict;
}
static MP_DEFINE_CONST_FUN_OBJ_0(lwipstats_profile_obj, lwipstats_profile);

static unsigned pcb_count(struct tcp_pcb *list) {
    unsigned n = 0;
    for (; list != NULL; list = list->next) {
        n++;
    }
    return n;
}

// counters() -> counters and pool use. *_used must come back to their values after a run: else it leaks.
static mp_obj_t lwipstats_counters(void) {
    mp_obj_t dict = mp_obj_new_dict(40);
    MICROPY_PY_LWIP_ENTER
    struct { const char *name; mp_int_t value; } v[] = {
        { "tcp_write_errmem", (mp_int_t)net_tcp_write_errmem },
        { "mem_used", (mp_int_t)lwip_stats.mem.used },
        { "mem_max", (mp_int_t)lwip_stats.mem.max },
        { "mem_err", (mp_int_t)lwip_stats.mem.err },
        { "pbuf_used", (mp_int_t)lwip_stats.memp[MEMP_PBUF]->used },
        { "pbuf_max", (mp_int_t)lwip_stats.memp[MEMP_PBUF]->max },
        { "pbuf_err", (mp_int_t)lwip_stats.memp[MEMP_PBUF]->err },
        { "pool_used", (mp_int_t)lwip_stats.memp[MEMP_PBUF_POOL]->used },
        { "pool_max", (mp_int_t)lwip_stats.memp[MEMP_PBUF_POOL]->max },
        { "pool_err", (mp_int_t)lwip_stats.memp[MEMP_PBUF_POOL]->err },
        { "seg_used", (mp_int_t)lwip_stats.memp[MEMP_TCP_SEG]->used },
        { "seg_max", (mp_int_t)lwip_stats.memp[MEMP_TCP_SEG]->max },
        { "seg_err", (mp_int_t)lwip_stats.memp[MEMP_TCP_SEG]->err },
        { "tcp_pcb_used", (mp_int_t)lwip_stats.memp[MEMP_TCP_PCB]->used },
        { "tcp_pcb_err", (mp_int_t)lwip_stats.memp[MEMP_TCP_PCB]->err },
        { "tcp_listen_used", (mp_int_t)lwip_stats.memp[MEMP_TCP_PCB_LISTEN]->used },
        { "udp_pcb_used", (mp_int_t)lwip_stats.memp[MEMP_UDP_PCB]->used },
        { "tcp_active", (mp_int_t)pcb_count(tcp_active_pcbs) },
        { "tcp_time_wait", (mp_int_t)pcb_count(tcp_tw_pcbs) },
        { "tcp_xmit", (mp_int_t)lwip_stats.tcp.xmit },
        { "tcp_recv", (mp_int_t)lwip_stats.tcp.recv },
        { "tcp_drop", (mp_int_t)lwip_stats.tcp.drop },
        { "tcp_chkerr", (mp_int_t)lwip_stats.tcp.chkerr },
        { "tcp_memerr", (mp_int_t)lwip_stats.tcp.memerr },
        { "tcp_retrans", (mp_int_t)lwip_stats.mib2.tcpretranssegs },
        { "tcp_estab_resets", (mp_int_t)lwip_stats.mib2.tcpestabresets },
        { "udp_xmit", (mp_int_t)lwip_stats.udp.xmit },
        { "udp_recv", (mp_int_t)lwip_stats.udp.recv },
        { "udp_drop", (mp_int_t)lwip_stats.udp.drop },
        { "udp_chkerr", (mp_int_t)lwip_stats.udp.chkerr },
        { "ip_drop", (mp_int_t)lwip_stats.ip.drop },
        { "link_drop", (mp_int_t)lwip_stats.link.drop },
        { "lock_errors", (mp_int_t)net_load.lock_errors },
        { "asserts", (mp_int_t)port_lwip_asserts },
    };
    MICROPY_PY_LWIP_EXIT
    for (size_t i = 0; i < MP_ARRAY_SIZE(v); i++) {
        store_int(dict, v[i].name, v[i].value);
    }
    return dict;
}
static MP_DEFINE_CONST_FUN_OBJ_0(lwipstats_counters_obj, lwipstats_counters);

// mac() -> counters of the MAC driver
static mp_obj_t lwipstats_mac(void) {
    mp_obj_t dict = mp_obj_new_dict(8);
    mac_stats_t s = mac_stats;
    store_int(dict, "rx_frames", (mp_int_t)s.rx_frames);
    store_int(dict, "rx_bytes", (mp_int_t)s.rx_bytes);
    store_int(dict, "rx_no_pbuf", (mp_int_t)s.rx_no_pbuf);
    store_int(dict, "rx_errors", (mp_int_t)s.rx_errors);
    store_int(dict, "tx_frames", (mp_int_t)s.tx_frames);
    store_int(dict, "tx_bytes", (mp_int_t)s.tx_bytes);
    store_int(dict, "tx_busy", (mp_int_t)s.tx_busy);
    store_int(dict, "irqs", (mp_int_t)s.irqs);
    return dict;
}
static MP_DEFINE_CONST_FUN_OBJ_0(lwipstats_mac_obj, lwipstats_mac);

// cpu() -> (busy_ns, idle_ns) since power-up.
// On an emulator at -icount shift=0 busy_ns is the number of instructions executed.
static mp_obj_t lwipstats_cpu(void) {
    uint32_t state = machine_irq_disable();
    uint64_t now = machine_time_ticks();
    uint64_t idle = net_load.idle_ticks;
    machine_irq_restore(state);
    mp_obj_t tuple[2] = {
        mp_obj_new_int_from_ull((now - idle) * 1000 / MACHINE_TICKS_PER_US),
        mp_obj_new_int_from_ull(idle * 1000 / MACHINE_TICKS_PER_US),
    };
    return mp_obj_new_tuple(2, tuple);
}
static MP_DEFINE_CONST_FUN_OBJ_0(lwipstats_cpu_obj, lwipstats_cpu);

// chksum(buffer, offset=0, length=None) -> the Internet checksum as lwIP's routine returns it
static mp_obj_t lwipstats_chksum(size_t n_args, const mp_obj_t *args) {
    mp_buffer_info_t buf;
    mp_get_buffer_raise(args[0], &buf, MP_BUFFER_READ);
    size_t offset = n_args > 1 ? (size_t)mp_obj_get_int(args[1]) : 0;
    size_t len = n_args > 2 ? (size_t)mp_obj_get_int(args[2]) : buf.len - offset;
    if (offset > buf.len || len > buf.len - offset) {
        mp_raise_ValueError(MP_ERROR_TEXT("outside the buffer"));
    }
    return MP_OBJ_NEW_SMALL_INT(port_chksum((const uint8_t *)buf.buf + offset, (int)len));
}
static MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(lwipstats_chksum_obj, 1, 3, lwipstats_chksum);

static const mp_rom_map_elem_t lwipstats_globals_table[] = {
    { MP_ROM_QSTR(MP_QSTR___name__), MP_ROM_QSTR(MP_QSTR_lwipstats) },
    { MP_ROM_QSTR(MP_QSTR_profile), MP_ROM_PTR(&lwipstats_profile_obj) },
    { MP_ROM_QSTR(MP_QSTR_counters), MP_ROM_PTR(&lwipstats_counters_obj) },
    { MP_ROM_QSTR(MP_QSTR_mac), MP_ROM_PTR(&lwipstats_mac_obj) },
    { MP_ROM_QSTR(MP_QSTR_cpu), MP_ROM_PTR(&lwipstats_cpu_obj) },
    { MP_ROM_QSTR(MP_QSTR_chksum), MP_ROM_PTR(&lwipstats_chksum_obj) },
};
static MP_DEFINE_CONST_DICT(lwipstats_globals, lwipstats_globals_table);

const mp_obj_module_t mp_module_lwipstats = {
    .base = { &mp_type_module },
    .globals = (mp_obj_dict_t *)&lwipstats_globals,
};
MP_REGISTER_MODULE(MP_QSTR_lwipstats, mp_module_lwipstats);
