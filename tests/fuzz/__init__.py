"""Mutated calls, malformed files, killed runs and hostile requests: a right answer or an error of our own.

``python3 dev.py fuzz --minutes N`` runs all of it for a while; the fast lane runs a part. Every failure is
printed with its seed and as few mutated arguments as show it.
"""
