"""Several Parlours over one PostgreSQL and one Redis: that replies are whole, how quick, what they cost, and kills."""
