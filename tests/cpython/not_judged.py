"""Tests of CPython whose outcome says nothing about a capture, each with the reason. A name ends in * where it stands for many."""

NOT_JUDGED: dict[str, str] = {}
