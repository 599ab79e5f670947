"""What a result means: units, bounds, both ends' figures, repeats, comparison of two folders.

Pure functions over `upyperf.records`; nothing here knows a board, a file layout or a terminal.
"""
