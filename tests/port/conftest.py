from harness.qemu_fixtures import board, elf, far_board, isolated, peer

__all__ = ["board", "elf", "far_board", "isolated", "peer"]
