SELECT count(*) FROM tokens
