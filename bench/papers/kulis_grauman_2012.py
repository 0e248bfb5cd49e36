"""Experiments of Kulis and Grauman 2012, Kernelized locality-sensitive hashing."""

from __future__ import annotations
