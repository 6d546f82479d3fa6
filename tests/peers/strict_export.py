#!/usr/bin/env python3
"""Strict export against PyTorch, live: python tests/peers/strict_export.py [--only NAME] [--show] [--all]

The programs and layers of export.py and those of export_structure_cases.py (regions, higher-order operators, modules in modules,
hooks, shared modules, state, refusals) with torch.export.export(strict=True), compared by its code and by Calque's program `export`.
Forms that differ are listed with the reason in strict_export_gaps.tsv.

Symbols of data are numbered by their first appearance. Keys of module stacks are addresses of Python objects in PyTorch's
strict programs: compared are the paths, and which call of a module it is.
"""
import sys

import export
import export_structure_cases  # noqa: F401  adds its programs to those of export.py

if __name__ == "__main__":
    sys.exit(export.main(strict=True))
