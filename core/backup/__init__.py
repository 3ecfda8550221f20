"""One file that holds a data folder, made while Parlour runs, and a data folder made of it again."""
