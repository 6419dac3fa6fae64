"""`python -m gpudebug` is the `gpudebug` command."""

from gpudebug.cli import main

if __name__ == "__main__":
    main()
