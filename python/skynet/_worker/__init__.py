"""The interpreter's side of the sidecar: docs/worker-protocol.md tells how the two talk.

Standard library only, Python 3.9 or newer. Whatever a metric may shadow is imported before the metric is.
"""
