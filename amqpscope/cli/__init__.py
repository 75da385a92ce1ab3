"""The commands: thin. Each reads its options, calls the library, and hands the result to a report."""
