"""The one place that holds the version (read by the build and by `calipers --version`)."""

__version__ = "0.2.0"
