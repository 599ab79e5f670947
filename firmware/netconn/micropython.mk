# make ... USER_C_MODULES=<folder above this one>, in a port with lwIP (MICROPY_PY_LWIP).
NETCONN_DIR := $(USERMOD_DIR)
SRC_USERMOD_C += $(addprefix $(NETCONN_DIR)/,netconn.c nc_tcp.c nc_udp.c nc_netbuf.c)
CFLAGS_USERMOD += -I$(NETCONN_DIR)
