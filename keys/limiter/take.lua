-- The same arithmetic as keys.limiter.gcra.take, on a bucket that all processes share.
-- KEYS: the bucket, a hash of arrival, day, spent
-- ARGV: rate, burst, daily (0: none), needed, lease, returned, backlog, used
-- Returns verdict, credits, wait, and the bucket for an outage of Redis: now, arrival, spent.
local SECOND, DAY, LEASE_SHARE, KEEP_SECONDS = 1000000, 86400000000, 3, 172800
local rate, burst, daily = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local needed, lease, returned = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local backlog, used = tonumber(ARGV[7]), tonumber(ARGV[8])

local function interval(credits)
  return math.ceil(credits * SECOND / rate)
end

-- Redis' clock, because the clocks of the processes may differ.
local time = redis.call('TIME')
local now = tonumber(time[1]) * SECOND + tonumber(time[2])
local bucket = redis.call('HMGET', KEYS[1], 'arrival', 'day', 'spent')

local day = math.floor(now / DAY)
local spent = tonumber(bucket[2] or 0) == day and tonumber(bucket[3] or 0) or 0
spent = math.max(0, math.max(spent, used) - returned)
local arrival = math.max(now + backlog, tonumber(bucket[1] or 0))
arrival = math.max(now, arrival - math.floor(returned * SECOND / rate))
local full = interval(burst)
local room = math.min(burst, math.floor((full - (arrival - now)) * rate / SECOND))
local quota = daily == 0 and room or daily - spent

local verdict, credits, wait = 0, 0, 0
if needed > quota and daily > 0 then
  verdict = 2
elseif needed > room then
  verdict = 1
  wait = math.max(1, arrival + interval(needed) - full - now)
else
  credits = math.max(needed, math.min(lease, math.floor(math.min(room, quota) / LEASE_SHARE)))
  arrival = arrival + interval(credits)
  spent = spent + credits
end

-- Lua's default format has 14 digits.
redis.call('HSET', KEYS[1], 'arrival', string.format('%.0f', arrival), 'day', day,
  'spent', string.format('%.0f', spent))
redis.call('EXPIRE', KEYS[1], KEEP_SECONDS)
return {verdict, credits, wait, now, arrival, spent}
