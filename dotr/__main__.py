"""`python -m dotr` is `dotr`."""

from dotr.cli.main import main

if __name__ == "__main__":
    main()
