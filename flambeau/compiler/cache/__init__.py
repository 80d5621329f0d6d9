"""The persistent cache of traces and programs."""
