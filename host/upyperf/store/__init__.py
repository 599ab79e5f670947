"""Results: one folder for each bench (the truth) and an index over all of them."""

from upyperf.store.folder import RunFolder
from upyperf.store.index import Index

__all__ = ["Index", "RunFolder"]
