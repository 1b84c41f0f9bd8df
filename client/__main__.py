"""`python -m client`: the same as `turnwright`."""

from client.entry import main

main()
