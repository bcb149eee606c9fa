"""`python -m palimpsest.cli`: the same as `palimpsest`."""

from palimpsest.cli import main

if __name__ == "__main__":
    main()
