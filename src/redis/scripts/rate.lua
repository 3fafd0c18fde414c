-- Rate: so many per period, with reservations ahead.
--   KEYS: settings, use (hash)
-- Modes: 4 cycles of `period` with `limit` calls each; 5 evenly spread (GCRA): one every period / limit, after a burst.
-- In `use`, cycles:  start, base (a cycle; all before it are over), last (the last cycle that has calls), and for each cycle
--                    from base on how many calls it has
--            spread: tat + part / limit, the theoretical time of the next call
-- What is reserved carries the version of the settings: after a change it is not given back.
RANGE.limit = { 1, MANY }
local set, why = settings('limit', 'period', 'mode', 'burst', 'first')
if not set then return why end
local version, keep, limit, period, mode, burst, first = set[1], set[2], set[3], set[4], set[5], set[6], set[7]
local use = KEYS[2]
local function text(number) return string.format('%.0f', number) end

-- ---- spread -------------------------------------------------------------------------------------
local tat, part
local function later(t, p, n)
  local sum = p + n * period
  return t + math.floor(sum / limit), sum % limit
end
local function spread_load()
  local u = redis.call('HMGET', use, 'tat', 'part')
  tat, part = tonumber(u[1]), tonumber(u[2]) or 0
  if not tat then
    tat = 0
    if first > 0 then tat, part = later(first, 0, burst - 1) end
  end
  if tat < now then tat, part = now, 0 end
end
local function ahead() return (tat - now) * limit + part end
local function spread_wait(n) return math.max(math.ceil((ahead() + n * period - burst * period) / limit), 0) end
local function spread_left()
  local left = burst * period - ahead()
  return left >= 0 and math.floor(left / period) or -math.ceil(-left / period)
end
local function spread_store()
  redis.call('HSET', use, 'tat', text(tat), 'part', text(part))
  redis.call('PEXPIRE', use, math.ceil((tat - now) / 1000) + 1000)
end

-- ---- cycles -------------------------------------------------------------------------------------
local start, base, last
local function used(cycle) return tonumber(redis.call('HGET', use, text(cycle))) or 0 end
local function cycles_load()
  local u = redis.call('HMGET', use, 'start', 'base', 'last')
  start, base, last = tonumber(u[1]) or now, tonumber(u[2]) or 0, tonumber(u[3]) or -1
  local cycle = math.max(math.floor((now - start) / period), base)
  if cycle > last then
    redis.call('DEL', use)
    last = cycle - 1
  else
    for k = base, cycle - 1 do redis.call('HDEL', use, text(k)) end
  end
  base = cycle
end
local function cycles_store()
  redis.call('HSET', use, 'start', text(start), 'base', text(base), 'last', text(last))
  redis.call('PEXPIRE', use, math.ceil((start + (last + 2) * period - now) / 1000) + 1000)
end
local function cycle_wait(k) return k == base and 0 or math.max(start + k * period - now, 0) end

-- Where n fit: whole into one cycle, or from one on after which all are empty. Answers that cycle, how many go into it,
-- and the cycle of the last one.
local function cycles_place(n)
  local k = base
  while true do
    local room = math.max(limit - used(k), 0)
    if room >= n then return k, n, k end
    if k >= last and room > 0 then return k, room, k + math.ceil((n - room) / limit) end
    k = k + 1
  end
end
local function cycles_put(k, inside, n)
  while n ~= 0 do
    redis.call('HINCRBY', use, text(k), text(inside))
    last = math.max(last, k)
    n = n - inside
    k = k + 1
    inside = n > 0 and math.min(n, limit) or math.max(n, -limit)
  end
end
local function cycles_total()
  local sum = 0
  for k = base, last do sum = sum + used(k) end
  return sum
end

local SPREAD = mode == 5
if SPREAD then spread_load() else cycles_load() end

-- take: how many, patience, how few would do now. Reserves if it comes within the patience.
-- Answers { 1 taken / 0 not, now, version, how long to wait, where (cycle, or time), part (how many in it, or fraction), how many }.
if verb == 'take' then
  local n, patience, few = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4] or ARGV[2])
  touch(keep)
  if few < n then
    n = math.max(math.min(n, SPREAD and spread_left() or limit - used(base)), few)
  end
  if SPREAD then
    local wait, t, p = spread_wait(n), tat, part
    if wait > patience then return { 0, now, version, wait, 0, 0, 0 } end
    tat, part = later(tat, part, n)
    spread_store()
    return { 1, now, version, wait, t, p, n }
  end
  local k, inside, to = cycles_place(n)
  local wait = cycle_wait(to)
  if wait > patience then
    if last >= base then cycles_store() end
    return { 0, now, version, wait, 0, 0, 0 }
  end
  cycles_put(k, inside, n)
  cycles_store()
  return { 1, now, version, wait, k, inside, n }
end

-- give: how many, version, where, part. What was reserved is free again, unless its time is over or others reserved behind it
-- (spread), or the settings have changed. Answers 1 if something was given back.
if verb == 'give' then
  local n, where, p = tonumber(ARGV[2]), tonumber(ARGV[4]), tonumber(ARGV[5])
  if tonumber(ARGV[3]) ~= version then return 0 end
  if SPREAD then
    local t, q = later(where, p, n)
    if t ~= tat or q ~= part then return 0 end
    tat, part = where, p
    spread_store()
    return 1
  end
  local k, inside, done = where, p, 0
  while n > 0 do
    if k >= base then
      local back = math.min(inside, used(k))
      if back > 0 then redis.call('HINCRBY', use, text(k), text(-back)) end
      done = 1
    end
    n = n - inside
    k, inside = k + 1, math.min(n, limit)
  end
  if last >= base then cycles_store() end
  return done
end

-- look: answers { now, version, limit, how many could be had (negative: reserved ahead), when one could be, cycle }.
if verb == 'look' then
  if SPREAD then return { now, version, limit, spread_left(), now + spread_wait(1), 0 } end
  local k = cycles_place(1)
  return { now, version, limit, limit - cycles_total(), now + cycle_wait(k), base }
end

-- drain: takes what is left now. Answers { how many that was, now, version }.
if verb == 'drain' then
  local left
  if SPREAD then
    left = math.max(spread_left(), 0)
    if left > 0 then
      local sum = burst * period
      tat, part = now + math.floor(sum / limit), sum % limit
      spread_store()
    end
  else
    left = math.max(limit - used(base), 0)
    if left > 0 then
      cycles_put(base, left, left)
      cycles_store()
    end
  end
  return { left, now, version }
end

-- change: as in every script. Credit and debt stay, in calls.
if verb == 'change' then
  local spent = SPREAD and ahead() / period or limit - cycles_total()
  local old_limit, old_period, old_burst, answer = limit, period, burst, change()
  if answer[1] ~= 1 then return answer end
  set = settings('limit', 'period', 'mode', 'burst', 'first')
  limit, period, burst = set[3], set[4], set[6]
  if limit == old_limit and period == old_period and burst == old_burst then return answer end
  if SPREAD then
    -- a burst that grows is not filled by that
    if spent > 0 then spent = math.max(spent + burst - old_burst, 0) end
    local sum = math.ceil(spent * period)
    tat, part = now + math.floor(sum / limit), sum % limit
    spread_store()
  else
    local debt = limit - math.min(spent, limit)
    if period ~= old_period then start, base = math.max(now, start + base * old_period), 0 end
    redis.call('DEL', use)
    last = base - 1
    if debt > 0 then cycles_put(base, math.min(debt, limit), debt) end
    cycles_store()
  end
  return answer
end
return redis.error_reply('ERR weir: unknown verb')
