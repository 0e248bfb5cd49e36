"""Experiments of Kim and Choi, Bilinear random projections for locality-sensitive binary codes."""

from __future__ import annotations
