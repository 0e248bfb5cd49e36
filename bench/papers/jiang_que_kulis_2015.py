"""Experiments of Jiang, Que and Kulis 2015, Revisiting kernelized locality-sensitive hashing."""

from __future__ import annotations
