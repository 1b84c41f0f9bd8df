"""`python -m client`: the same as `turnwright`."""

from client.cli import main

main()
