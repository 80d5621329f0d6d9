"""How training steps scale with processes: measured on this machine, predicted for more.

    python -m benchmarks.scaling               measure, fit, and write docs/scaling.md with its pictures
    python -m benchmarks.scaling --measured F  the same from the measurements in a file, which `--keep F` writes

The files in `measurements` are those of the manual's page; it says how much they differ.
"""
