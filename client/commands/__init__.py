"""The commands, one module for each noun.

What a command needs for its work is imported when it runs: every command would else wait for what the others
need, two seconds of it, before it says a word.
"""
