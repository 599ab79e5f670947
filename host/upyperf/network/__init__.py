"""How board and PC reach each other: bring-up on the board, the PC's address, probes."""

from upyperf.network.bringup import BoardNetwork, Static, bring_up
from upyperf.network.interfaces import Interface, choose, interfaces
from upyperf.network.reach import probe
from upyperf.network.wifi import WifiCredentials, credentials

__all__ = [
    "BoardNetwork", "Interface", "Static", "WifiCredentials", "bring_up", "choose", "credentials",
    "interfaces", "probe",
]  # fmt: skip
