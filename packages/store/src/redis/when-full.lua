-- Lets a script write on a full Redis. Include it before the first write of every script, except of those that take
-- something new: intake stops when Redis is full, and all that ends, delivers or mends goes on (docs/adr/0040).
-- Redis refuses a command that needs memory only before a script's first write. This is a write that changes nothing. A
-- replica refuses it, so that nothing else of the script runs there.
redis.call('DEL', KEYS[1] .. ':none')
