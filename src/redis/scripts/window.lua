-- Frequency: at most `limit` calls per window of `period`.
--   KEYS: settings, use (hash: begin, current, last), log (zset: call -> when; exact mode only)
-- Modes: 1 this window, and the last one by its share; 2 windows that begin at multiples of the period; 3 any window.
-- Refused calls never count.
local set = settings('limit', 'period', 'mode')
if not set then return UNKNOWN end
local version, keep, limit, period, mode = set[1], set[2], set[3], set[4], set[5]
local use, log = KEYS[2], KEYS[3]
local WEIGHTED, EXACT = 1, 3
local begin, current, last

local function windows()
  local w = redis.call('HMGET', use, 'begin', 'current', 'last')
  begin, current, last = tonumber(w[1]), tonumber(w[2]) or 0, tonumber(w[3]) or 0
  local start = now - now % period
  if not begin then begin = start end
  if now - begin >= period then -- a clock that ran back leaves all as it is
    last = start - begin == period and current or 0
    begin, current = start, 0
  end
end

local function store_windows()
  redis.call('HSET', use, 'begin', string.format('%.0f', begin), 'current', current, 'last', last)
  redis.call('PEXPIRE', use, math.ceil((begin + 2 * period - now) / 1000) + 1000)
end

local function carried()
  if mode ~= WEIGHTED then return 0 end
  return math.floor(last * (period - math.max(now - begin, 0)) / period)
end

-- How long after the begin of a window the share of the one before is at most `room`.
local function carried_until(before, room)
  if before <= room then return 0 end
  return period - math.ceil((room + 1) * period / before) + 1
end

local function windows_when(n)
  local room = limit - current - n
  if room >= carried() then return now end
  if room >= 0 then return begin + carried_until(last, room) end
  if mode ~= WEIGHTED then return begin + period end
  return begin + period + carried_until(current, limit - n)
end

local function exact_when(n)
  local live = redis.call('ZCARD', log)
  local over = live + n - limit
  if over <= 0 then return now end
  return tonumber(redis.call('ZRANGE', log, over - 1, over - 1, 'WITHSCORES')[2]) + period
end

local function left()
  if mode == EXACT then return math.max(limit - redis.call('ZCARD', log), 0) end
  return math.max(limit - current - carried(), 0)
end

if mode == EXACT then redis.call('ZREMRANGEBYSCORE', log, '-inf', now - period) else windows() end

-- take: how many, process, number, how few would do. Answers { 1 taken / 0 not, now, version, from when on it could be
-- (-1: never), how many }.
if verb == 'take' then
  local n, when = tonumber(ARGV[2]), -1
  local few = tonumber(ARGV[5] or n)
  if mode == EXACT and redis.call('ZSCORE', log, ARGV[3] .. ':' .. ARGV[4]) then return { 1, now, version, now, n } end
  n = math.max(math.min(n, left()), few)
  if n <= limit then when = mode == EXACT and exact_when(n) or windows_when(n) end
  touch(keep)
  if when < 0 or when > now then return { 0, now, version, when, 0 } end
  if mode == EXACT then
    for i = 0, n - 1 do redis.call('ZADD', log, now, ARGV[3] .. ':' .. string.format('%.0f', ARGV[4] + i)) end
    redis.call('PEXPIRE', log, math.ceil(period / 1000) + 1000)
  else
    current = current + n
    store_windows()
  end
  return { 1, now, version, now, n }
end

-- give: how many, process, number, when they were taken. They were not needed.
if verb == 'give' then
  local n, at = tonumber(ARGV[2]), tonumber(ARGV[5])
  if mode == EXACT then
    for i = 0, n - 1 do redis.call('ZREM', log, ARGV[3] .. ':' .. string.format('%.0f', ARGV[4] + i)) end
    return 1
  end
  if at >= begin then current = math.max(current - n, 0)
  elseif begin - at <= period then last = math.max(last - n, 0) end
  store_windows()
  return 1
end

-- look: answers { now, version, limit, how many could be had, from when on one could }.
if verb == 'look' then
  local when = -1
  if limit >= 1 then when = mode == EXACT and exact_when(1) or windows_when(1) end
  return { now, version, limit, left(), when }
end

-- change: as in every script. What was counted counts in the window that begins now.
if verb == 'change' then
  local before, answer = period, change()
  if answer[1] == 1 and mode ~= EXACT then
    limit, period = tonumber(redis.call('HGET', cfg, 'limit')), tonumber(redis.call('HGET', cfg, 'period'))
    if period ~= before then
      current = math.min(current + (mode == WEIGHTED and last or 0), limit)
      last, begin = 0, now - now % period
      store_windows()
    end
  end
  return answer
end
return redis.error_reply('ERR weir: unknown verb')
