"""The command line: parse, call the library, print. Each command is one file, loaded when it is used."""
