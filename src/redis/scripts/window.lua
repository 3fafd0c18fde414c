-- Frequency: at most `limit` calls per window of `period`, with turns ahead for those that wait.
--   KEYS: settings, use (hash: begin, current, last of the present; tail_* after all turns), log (zset: call -> when; exact mode
--         only), line (zset: call:how many -> its turn; other modes)
-- Modes: 1 this window, and the last one by its share; 2 windows that begin at multiples of the period; 3 any window.
-- Refused calls never count. A turn is given once, behind all others, so those that wait go in order, whichever process they
-- are of, and need not ask again. It counts from its time on.
local set, why = settings('limit', 'period', 'mode')
if not set then return why end
local version, keep, limit, period, mode = set[1], set[2], set[3], set[4], set[5]
local use, log, line = KEYS[2], KEYS[3], KEYS[4]
local WEIGHTED, EXACT = 1, 3
local function text(number) return string.format('%.0f', number) end

-- ---- windows: a track is { begin, current, last } ---------------------------------------------------
local present, tail, tail_at

local function roll(w, t)
  local start = t - t % period
  if not w.begin then w.begin = start end
  if t - w.begin >= period then -- a clock that ran back leaves all as it is
    w.last = start - w.begin == period and w.current or 0
    w.begin, w.current = start, 0
  end
end

local function add(w, t, n)
  roll(w, t)
  w.current = w.current + n
end

local function carried(w, t)
  if mode ~= WEIGHTED then return 0 end
  return math.floor(w.last * (period - math.max(t - w.begin, 0)) / period)
end

-- How long after the begin of a window the share of the one before is at most `room`.
local function carried_until(before, room)
  if before <= room then return 0 end
  return period - math.ceil((room + 1) * period / before) + 1
end

local function copy(w) return { begin = w.begin, current = w.current, last = w.last } end

-- From when on, at t or later, n fit.
local function fits(track, t, n)
  local w = copy(track)
  roll(w, t)
  local room = limit - w.current - n
  if room >= carried(w, t) then return t end
  if room >= 0 then return w.begin + carried_until(w.last, room) end
  if mode ~= WEIGHTED then return w.begin + period end
  return w.begin + period + carried_until(w.current, limit - n)
end

local function each_turn(from, to, what)
  local list = redis.call('ZRANGE', line, from, to, 'BYSCORE', 'WITHSCORES')
  for i = 1, #list, 2 do what(tonumber(list[i + 1]), tonumber(string.match(list[i], ':(%d+)$'))) end
  return #list > 0
end

-- The tail as it is after all turns.
local function find_tail()
  tail, tail_at = copy(present), now
  each_turn('(' .. text(now), '+inf', function(t, n)
    add(tail, t, n)
    tail_at = t
  end)
end

-- Turns whose time has come are of the present.
local function load()
  local v = redis.call('HMGET', use, 'begin', 'current', 'last', 'tail_begin', 'tail_current', 'tail_last', 'tail_at')
  present = { begin = tonumber(v[1]), current = tonumber(v[2]) or 0, last = tonumber(v[3]) or 0 }
  if each_turn('-inf', text(now), function(t, n) add(present, t, n) end) then redis.call('ZREMRANGEBYSCORE', line, '-inf', text(now)) end
  roll(present, now)
  if tonumber(v[7]) and tonumber(v[7]) > now then
    tail, tail_at = { begin = tonumber(v[4]), current = tonumber(v[5]), last = tonumber(v[6]) }, tonumber(v[7])
  else
    tail, tail_at = copy(present), now
  end
end

local function store()
  local ms = math.ceil((math.max(tail_at - now, 0) + 2 * period) / 1000) + 1000
  redis.call('HSET', use, 'begin', text(present.begin), 'current', present.current, 'last', present.last,
    'tail_begin', text(tail.begin), 'tail_current', tail.current, 'tail_last', tail.last, 'tail_at', text(tail_at))
  redis.call('PEXPIRE', use, ms)
  redis.call('PEXPIRE', line, ms)
end

-- ---- exact: calls of the last period, and turns to come ----------------------------------------------
local function last_turn() return tonumber(redis.call('ZRANGE', log, -1, -1, 'WITHSCORES')[2] or 0) end

local function exact_when(n)
  local over = redis.call('ZCARD', log) + n - limit
  local when = math.max(now, last_turn())
  if over <= 0 then return when end
  return math.max(when, tonumber(redis.call('ZRANGE', log, over - 1, over - 1, 'WITHSCORES')[2]) + period)
end

-- ---- both ---------------------------------------------------------------------------------------------
local function when_of(n)
  if n > limit then return -1 end
  if mode == EXACT then return exact_when(n) end
  return fits(tail, math.max(now, tail_at), n)
end

-- How many could be had now, behind all that wait.
local function left()
  if mode == EXACT then return last_turn() > now and 0 or math.max(limit - redis.call('ZCARD', log), 0) end
  return tail_at > now and 0 or math.max(limit - present.current - carried(present, now), 0)
end

if mode == EXACT then redis.call('ZREMRANGEBYSCORE', log, '-inf', now - period) else load() end

-- take: how many, process, number, how few would do, patience. A turn is given if it comes within the patience.
-- Answers { 1 taken / 0 not, now, version, when (-1: never), how many }.
if verb == 'take' then
  local n, id, few, patience = tonumber(ARGV[2]), ARGV[3] .. ':' .. ARGV[4], tonumber(ARGV[5] or ARGV[2]), tonumber(ARGV[6] or 0)
  local given = mode == EXACT and redis.call('ZSCORE', log, id)
  if given then return { 1, now, version, tonumber(given), n } end
  n = math.max(math.min(n, left()), few)
  local when = when_of(n)
  touch(keep)
  if when < 0 or when - now > patience then return { 0, now, version, when, 0 } end
  if mode == EXACT then
    for i = 0, n - 1 do redis.call('ZADD', log, when, ARGV[3] .. ':' .. text(ARGV[4] + i)) end
    redis.call('PEXPIRE', log, math.ceil((when - now + period) / 1000) + 1000)
    return { 1, now, version, when, n }
  end
  if when <= now then
    add(present, now, n)
    tail, tail_at = copy(present), now
  else
    redis.call('ZADD', line, when, id .. ':' .. n)
    add(tail, when, n)
    tail_at = when
  end
  store()
  return { 1, now, version, when, n }
end

-- give: how many, process, number, when they were taken. They were not needed. Turns behind it stay as they were told.
if verb == 'give' then
  local n, at = tonumber(ARGV[2]), tonumber(ARGV[5])
  if mode == EXACT then
    for i = 0, n - 1 do redis.call('ZREM', log, ARGV[3] .. ':' .. text(ARGV[4] + i)) end
    return 1
  end
  if redis.call('ZREM', line, ARGV[3] .. ':' .. ARGV[4] .. ':' .. n) == 0 then
    if at >= present.begin then present.current = math.max(present.current - n, 0)
    elseif present.begin - at <= period then present.last = math.max(present.last - n, 0) end
  end
  find_tail()
  store()
  return 1
end

-- look: answers { now, version, limit, how many could be had, from when on one could }.
if verb == 'look' then return { now, version, limit, left(), when_of(1) } end

-- change: as in every script. What was counted counts in the window that begins now.
if verb == 'change' then
  local before, answer = period, change()
  if answer[1] == 1 and mode ~= EXACT then
    limit, period = tonumber(redis.call('HGET', cfg, 'limit')), tonumber(redis.call('HGET', cfg, 'period'))
    if period ~= before then
      present.current = math.min(present.current + (mode == WEIGHTED and present.last or 0), limit)
      present.last, present.begin = 0, now - now % period
    end
    find_tail()
    store()
  end
  return answer
end
return redis.error_reply('ERR weir: unknown verb')
