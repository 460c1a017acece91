"""Networks and tables of states, as users give them."""
