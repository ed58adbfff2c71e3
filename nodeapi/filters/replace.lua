-- Replaces a filter's state, unless another process has done so.
-- KEYS: the filter, the sorted set of the key's filters by expiry
-- ARGV: id, state, milliseconds until expiry, the state before
-- Returns 1, or 0 if the state is not the one before.
if redis.call('GET', KEYS[1]) ~= ARGV[4] then
  return 0
end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
redis.call('ZADD', KEYS[2], now + tonumber(ARGV[3]), ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return 1
