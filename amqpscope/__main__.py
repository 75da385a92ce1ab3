"""`python -m amqpscope`: the command line."""

from amqpscope.cli.start import main

if __name__ == "__main__":
    main()
