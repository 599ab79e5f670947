"""What the test suite stands on: the collector of device tests, and the account of what did not run."""
