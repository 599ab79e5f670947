"""iPerf 3: control connection, TCP and UDP streams, client and server."""
