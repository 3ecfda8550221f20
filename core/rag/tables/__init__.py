"""Tables of documents as tables of a database: their columns have types, and one SELECT asks them."""
