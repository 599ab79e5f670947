# For freezing the driver into a firmware: include("$(UPYPERF)/firmware/winc1500/manifest.py")
# ruff: noqa: F821
package(
    "winc1500",
    files=(
        "__init__.py", "chip.py", "compat.py", "driver.py", "errors.py", "flow.py", "frames.py", "hif.py",
        "link.py", "lookup.py", "network.py", "socket.py", "sockets.py", "spi.py", "table.py",
        "wifi.py", "wifi_extra.py",
    ),
    base_path="..",
    opt=3,
)  # fmt: skip
