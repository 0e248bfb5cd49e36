"""Experiments of Raginsky and Lazebnik 2009, Locality-sensitive binary codes from shift-invariant kernels."""

from __future__ import annotations
