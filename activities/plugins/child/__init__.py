"""Code of packages that are not bundled, in a process of its own per package digest and session.

pool            which process answers for which session
process         one process, as the worker sees it
main            what runs inside it
confinement     what the process gives up before it reads a line of the package: landlock, seccomp
"""
