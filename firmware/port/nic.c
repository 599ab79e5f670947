// network.LAN: the machine's Ethernet interface.
#include <string.h>

#include "py/mphal.h"
#include "py/runtime.h"
#include "extmod/modnetwork.h"

#include "lwip/dhcp.h"
#include "mac.h"
#include "net.h"

typedef struct _lan_obj_t {
    mp_obj_base_t base;
} lan_obj_t;

static const lan_obj_t lan_obj = { { &port_lan_type } };

// As on stm32: 0 down, 1 link down, 2 no address, 3 up and configured.
static int lan_state(void) {
    if (!net_active()) {
        return 0;
    }
    if (!netif_is_link_up(&net_netif)) {
        return 1;
    }
    return ip4_addr_isany(netif_ip4_addr(&net_netif)) ? 2 : 3;
}

static void lan_print(const mp_print_t *print, mp_obj_t self_in, mp_print_kind_t kind) {
    (void)self_in;
    (void)kind;
    char ip[16];
    ip4addr_ntoa_r(netif_ip4_addr(&net_netif), ip, sizeof(ip));
    mp_printf(print, "<LAN %d %s>", lan_state(), ip);
}

static mp_obj_t lan_make_new(const mp_obj_type_t *type, size_t n_args, size_t n_kw, const mp_obj_t *args) {
    (void)type;
    mp_arg_check_num(n_args, n_kw, 0, 0, false);
    return MP_OBJ_FROM_PTR(&lan_obj);
}

static mp_obj_t lan_active(size_t n_args, const mp_obj_t *args) {
    if (n_args == 1) {
        return mp_obj_new_bool(net_active());
    }
    if (mp_obj_is_true(args[1])) {
        int ret = net_start();
        if (ret < 0) {
            mp_raise_OSError(-ret);
        }
        mod_network_register_nic(args[0]);
    } else {
        net_stop();
    }
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(lan_active_obj, 1, 2, lan_active);

static mp_obj_t lan_isconnected(mp_obj_t self_in) {
    (void)self_in;
    return mp_obj_new_bool(lan_state() == 3);
}
static MP_DEFINE_CONST_FUN_OBJ_1(lan_isconnected_obj, lan_isconnected);

static mp_obj_t lan_status(mp_obj_t self_in) {
    (void)self_in;
    return MP_OBJ_NEW_SMALL_INT(lan_state());
}
static MP_DEFINE_CONST_FUN_OBJ_1(lan_status_obj, lan_status);

static mp_obj_t lan_ifconfig(size_t n_args, const mp_obj_t *args) {
    return mod_network_nic_ifconfig(&net_netif, n_args - 1, args + 1);
}
static MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(lan_ifconfig_obj, 1, 2, lan_ifconfig);

static mp_obj_t lan_ipconfig(size_t n_args, const mp_obj_t *args, mp_map_t *kwargs) {
    if (kwargs->used == 0) {
        return mod_network_nic_ipconfig(&net_netif, n_args - 1, args + 1, kwargs);
    }
    // Upstream looks at args[0] for the address family of every keyword: hand it one at a time.
    for (size_t i = 0; i < kwargs->alloc; ++i) {
        if (mp_map_slot_is_filled(kwargs, i)) {
            mp_obj_t pair[2] = { kwargs->table[i].key, kwargs->table[i].value };
            mp_map_t one;
            mp_map_init_fixed_table(&one, 1, pair);
            mod_network_nic_ipconfig(&net_netif, n_args - 1, pair, &one);
        }
    }
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_KW(lan_ipconfig_obj, 1, lan_ipconfig);

static mp_obj_t lan_config(size_t n_args, const mp_obj_t *args, mp_map_t *kwargs) {
    if (kwargs->used == 0) {
        if (n_args != 2) {
            mp_raise_TypeError(MP_ERROR_TEXT("must query one param"));
        }
        const char *name = mp_obj_str_get_str(args[1]);
        int value;
        if (strcmp(name, "mac") == 0) {
            return mp_obj_new_bytes(net_netif.hwaddr, 6);
        } else if (strcmp(name, "hostname") == 0) {
            return mod_network_hostname(0, NULL);
        } else if (strcmp(name, "service") == 0) {
            return MP_OBJ_NEW_QSTR(net_get_softirq() ? MP_QSTR_irq : MP_QSTR_task);
        } else if (mac_config_get(name, &value)) {
            return mp_obj_new_int(value);
        }
        mp_raise_ValueError(MP_ERROR_TEXT("this MAC has no such param"));
    }
    if (n_args != 1) {
        mp_raise_TypeError(MP_ERROR_TEXT("can't specify pos and kw args"));
    }
    for (size_t i = 0; i < kwargs->alloc; ++i) {
        if (!mp_map_slot_is_filled(kwargs, i)) {
            continue;
        }
        const char *name = mp_obj_str_get_str(kwargs->table[i].key);
        mp_obj_t value = kwargs->table[i].value;
        if (strcmp(name, "hostname") == 0) {
            mod_network_hostname(1, &value);
        } else if (strcmp(name, "service") == 0) {
            const char *how = mp_obj_str_get_str(value);
            if (strcmp(how, "irq") != 0 && strcmp(how, "task") != 0) {
                mp_raise_ValueError(MP_ERROR_TEXT("service must be 'irq' or 'task'"));
            }
            net_set_softirq(how[0] == 'i');
        } else if (!mac_config_set(name, mp_obj_get_int(value))) {
            mp_raise_ValueError(MP_ERROR_TEXT("this MAC has no such param"));
        }
    }
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_KW(lan_config_obj, 1, lan_config);

static const mp_rom_map_elem_t lan_locals_dict_table[] = {
    { MP_ROM_QSTR(MP_QSTR_active), MP_ROM_PTR(&lan_active_obj) },
    { MP_ROM_QSTR(MP_QSTR_isconnected), MP_ROM_PTR(&lan_isconnected_obj) },
    { MP_ROM_QSTR(MP_QSTR_status), MP_ROM_PTR(&lan_status_obj) },
    { MP_ROM_QSTR(MP_QSTR_ifconfig), MP_ROM_PTR(&lan_ifconfig_obj) },
    { MP_ROM_QSTR(MP_QSTR_ipconfig), MP_ROM_PTR(&lan_ipconfig_obj) },
    { MP_ROM_QSTR(MP_QSTR_config), MP_ROM_PTR(&lan_config_obj) },
};
static MP_DEFINE_CONST_DICT(lan_locals_dict, lan_locals_dict_table);

MP_DEFINE_CONST_OBJ_TYPE(
    port_lan_type,
    MP_QSTR_LAN,
    MP_TYPE_FLAG_NONE,
    make_new, lan_make_new,
    print, lan_print,
    locals_dict, &lan_locals_dict
    );
