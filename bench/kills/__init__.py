"""A thousand kills: Parlour is killed in the midst of its work, and what it acknowledged must be there afterwards."""
