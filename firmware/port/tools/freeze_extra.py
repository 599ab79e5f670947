# A manifest: freezes the modules and packages that upyperf.firmware.build(freeze=...) names, for
# comparisons with other people's programs in one firmware.
import os

for path in os.environ.get("UPYPERF_FREEZE_EXTRA", "").split(":"):
    if path:
        if os.path.isdir(path):
            package(os.path.basename(path), base_path=os.path.dirname(path))  # noqa: F821 (makemanifest's own names)
        else:
            module(os.path.basename(path), base_path=os.path.dirname(path))  # noqa: F821
