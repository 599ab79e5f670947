"""iPerf 2: what iperf 2.0.5 to 2.2 speak. client.run and server.run are the entries."""
