-- Adds a filter, unless its API key has too many or too large ones.
-- KEYS: the filter, the sorted set of the key's filters by expiry
-- ARGV: id, state, milliseconds until expiry, maximum number of filters, maximum bytes
-- of their states
-- Returns 1; 0 if there are too many, -1 if they are too large.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
if redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[4]) then
  return 0
end
local prefix = string.sub(KEYS[1], 1, -1 - #ARGV[1])
local bytes = #ARGV[2]
for _, name in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
  bytes = bytes + redis.call('STRLEN', prefix .. name)
end
if bytes > tonumber(ARGV[5]) then
  return -1
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
redis.call('ZADD', KEYS[2], now + tonumber(ARGV[3]), ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return 1
