"""``python -m graphattn`` is the command line."""

from graphattn.cli import main

main()
