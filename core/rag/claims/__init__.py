"""What the sentences of an answer claim, held against passages: figures, dates, names, roles and denials."""
