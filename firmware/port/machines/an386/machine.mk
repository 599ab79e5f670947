# QEMU mps2-an386: Cortex-M4F, CMSDK UART, LAN9118 (Arm AN386; SMSC LAN9118 data sheet).
CFLAGS_MACHINE = -mthumb -mcpu=cortex-m4 -mfpu=fpv4-sp-d16 -mfloat-abi=hard
MPY_CROSS_FLAGS += -march=armv7emsp
LDSCRIPT = $(MACHINE_DIR)/an386.ld
INC += -Iarch/cortexm
MACHINE_SRC_C = arch/cortexm/cortexm.c $(addprefix $(MACHINE_DIR)/,an386.c lan9118.c)
MACHINE_SRC_O = shared/runtime/gchelper_native.o shared/runtime/gchelper_thumb2.o
