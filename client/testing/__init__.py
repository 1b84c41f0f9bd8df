"""Offline tests of packages: the real workflows and activities, with replies written beforehand.

plan       which cases of which package
stand      what they run on: server, model, store and worker, for one command
play       one case, played and judged
report     what came of it, for people and for programs
"""
