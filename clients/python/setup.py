"""Builds the optional module in C. Where that fails, the package does the same in Python, more slowly."""

from setuptools import Extension, setup

setup(ext_modules=[Extension("bloomtype._speedups", ["bloomtype/_speedups.c"], optional=True)])
