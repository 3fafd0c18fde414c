-- Permits: concurrency, bulkheads, mutexes, and the leases of groups.
--   KEYS: settings, held (zset: permit -> end of its lease), info (hash: permit or waiter -> what it is),
--         line (zset: waiter -> its number), wants (hash: process -> how many it could use)
-- A permit is a member of `held`; how many are out is the size of that set, and nothing else counts them.
-- An id is <process>:<number>; several permits of one call have numbers in a row. In `info`:
--   h <token> <how many, in the first one of a call; else 0> <who>         holds
--   w <how many> <how few would do> <end of its own lease> <who>           waits
-- A waiter that is served gets its permits here, with a lease, and a message on its process' channel:
--   g <first number> <token> <how many> <end of the lease> <now>
local held, info, line, wants = KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local set, why = settings('limit', 'lease', 'token', 'waiters', 'born', 'grace')
if not set then return why end
local version, keep, limit, lease, token = set[1], set[2], set[3], set[4], set[5]
local born, grace = set[7], set[8]
local first_token = token

local function bell(process) return 'weir:bell:' .. process end
local function text(number) return string.format('%.0f', number) end
local function split(id) local p, n = string.match(id, '^(.*):(%d+)$') return p, tonumber(n) end

-- Tokens grow with each grant. They follow the clock, so they grow also if the server has forgotten the last one.
local function next_token()
  token = math.max(token + 1, now)
  return token
end

local function admit(process, number, count, who)
  local mine, ends = next_token(), now + lease
  for i = 0, count - 1 do
    local id = process .. ':' .. text(number + i)
    redis.call('ZADD', held, ends, id)
    redis.call('HSET', info, id, 'h ' .. text(mine) .. ' ' .. (i == 0 and count or 0) .. ' ' .. who)
  end
  return mine
end

-- Permits whose lease is over are free.
local function expire()
  local dead = redis.call('ZRANGEBYSCORE', held, '-inf', now)
  for i = 1, #dead do
    redis.call('ZREM', held, dead[i])
    redis.call('HDEL', info, dead[i])
  end
  return #dead
end

-- What may be given out. Nothing as long as permits may be out that the server has forgotten.
local function count_free() return now < grace and 0 or limit - redis.call('ZCARD', held) end

-- The first in line get what is free, in their order: one that wants more than there is keeps those behind it waiting.
local function serve()
  local free = count_free()
  while free > 0 do
    local id = redis.call('ZRANGE', line, 0, 0)[1]
    if not id then break end
    local n, few, ends, who = string.match(redis.call('HGET', info, id) or '', '^w (%d+) (%d+) (%d+) (.*)$')
    if not n or tonumber(ends) <= now then -- its process is gone
      redis.call('ZREM', line, id)
      redis.call('HDEL', info, id)
    elseif tonumber(few) > free then
      break
    else
      local count = math.min(tonumber(n), free)
      local process, number = split(id)
      redis.call('ZREM', line, id)
      local mine = admit(process, number, count, who)
      free = free - count
      redis.call('PUBLISH', bell(process), 'g ' .. text(number) .. ' ' .. text(mine) .. ' ' .. count .. ' ' ..
        text(now + lease) .. ' ' .. text(now))
    end
  end
end

-- What was changed outlives the longest lease in it, and no more.
local function finish()
  local ms = math.ceil(lease / 1000) * 2 + 1000
  if token ~= first_token then redis.call('HSET', cfg, 'token', text(token)) end
  touch(keep)
  redis.call('PEXPIRE', held, ms)
  redis.call('PEXPIRE', info, ms)
  redis.call('PEXPIRE', line, ms)
end

-- When the next lease ends if nobody renews it; 0: none is out.
local function next_end()
  if now < grace then return grace end
  return tonumber(redis.call('ZRANGE', held, 0, 0, 'WITHSCORES')[2] or 0)
end

-- How many of the limit each process may use for its group: as many as it wants, as long as all wants fit; else the same
-- for all that want more. Where there are more processes than permits every permit goes through the line (0).
local function targets()
  local all, list, left = redis.call('HGETALL', wants), {}, limit
  for i = 1, #all, 2 do
    local want, have, ends = string.match(all[i + 1], '^(%d+) (%d+) (%d+)$')
    if not want or tonumber(ends) <= now then
      redis.call('HDEL', wants, all[i])
    else
      list[#list + 1] = { process = all[i], want = tonumber(want), have = tonumber(have) }
    end
  end
  if #list > limit then
    for i = 1, #list do list[i].target = 0 end
    return list
  end
  table.sort(list, function(a, b)
    if a.want ~= b.want then return a.want < b.want end
    return a.process < b.process
  end)
  local level = nil -- of those that want more than there is for each
  for i = 1, #list do
    if not level and list[i].want > math.floor(left / (#list - i + 1)) then level = math.floor(left / (#list - i + 1)) end
    list[i].target = level or list[i].want
    left = left - list[i].target
  end
  -- What does not divide goes around: each lease it is others'.
  local at = math.floor(now / lease)
  for i = 0, #list - 1 do
    local it = list[(at + i) % #list + 1]
    if left > 0 and it.target < it.want then
      it.target = it.target + 1
      left = left - 1
    end
  end
  return list
end

-- Notes what a process wants and has, and answers its target. Others are told theirs (t <target> <settings key>): if `recall`,
-- those that have permits, so that they give back what is above it or idle; if this one wants less than before, those that
-- can have more now.
local function demand(process, want, have, recall)
  local mine, before = 0, tonumber(string.match(redis.call('HGET', wants, process) or '', '^(%d+)')) or 0
  if want == 0 and have == 0 then
    redis.call('HDEL', wants, process)
  else
    redis.call('HSET', wants, process, want .. ' ' .. have .. ' ' .. text(now + lease))
    redis.call('PEXPIRE', wants, math.ceil(lease / 1000) * 2 + 1000)
  end
  local list = targets()
  for i = 1, #list do
    local it = list[i]
    if it.process == process then
      mine = it.target
    elseif recall and it.have > 0 or want < before and it.target > it.have then
      redis.call('PUBLISH', bell(it.process), 't ' .. it.target .. ' ' .. cfg)
    end
  end
  return mine
end

-- enter: process, number, how many, how few would do, wait (1: in line if need be), who [, want, have: a group's lease]
-- `waiters` bounds the callers in line. A process that asks for its groups may always stand there, once: its tasks wait in their queues.
-- Answers { 1 entered / 0 refused / 2 in line, token, how many, end of the lease, now, version, next end, target, limit, held }.
if verb == 'enter' then
  local process, number, n, few, wait, who = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6], ARGV[7]
  local id = process .. ':' .. ARGV[3]
  local state, mine, count, target, ends = 0, 0, 0, -1, now + lease

  expire()
  if redis.call('ZCARD', line) > 0 then serve() end -- it may be in line itself
  local old = redis.call('HGET', info, id)
  local kept = old and redis.call('ZSCORE', held, id)
  if kept then -- asked before; that answer was lost. The lease is as it was.
    local t, k = string.match(old, '^h (%d+) (%d+)')
    state, mine, count, ends = 1, tonumber(t), tonumber(k), tonumber(kept)
  else
    local free, first = count_free(), redis.call('ZCARD', line) == 0
    if ARGV[8] then
      local have = tonumber(ARGV[9])
      target = demand(process, tonumber(ARGV[8]), have, free < n or not first)
      -- Up to its share. One that has none waits for one at a time, however small its share is.
      n = math.min(n, target - have)
      if n < 1 then n = have == 0 and 1 or 0 end
    end
    if n > 0 and first and free >= few then
      state, count = 1, math.min(n, free)
      mine = admit(process, number, count, who)
      redis.call('ZREM', line, id)
    elseif n > 0 and wait == '1' and (few == 1 or few <= limit) and (ARGV[8] or redis.call('ZCARD', line) < set[6]) then
      state = 2
      if not redis.call('ZSCORE', line, id) then redis.call('ZADD', line, next_token(), id) end
      redis.call('HSET', info, id, 'w ' .. n .. ' ' .. few .. ' ' .. text(now + lease) .. ' ' .. who)
    end
  end
  finish()
  return { state, mine, count, ends, now, version, next_end(), target, limit, redis.call('ZCARD', held) }
end

-- leave: process, then first number and how many, as often as one likes. What is not held (any more) is no error: a
-- second leave changes nothing. Waiters leave the line this way, too. Answers { how many were given back, now, version }.
if verb == 'leave' then
  local gone = 0
  for i = 3, #ARGV, 2 do
    for k = 0, tonumber(ARGV[i + 1]) - 1 do
      local id = ARGV[2] .. ':' .. text(tonumber(ARGV[i]) + k)
      gone = gone + redis.call('ZREM', held, id)
      if redis.call('HDEL', info, id) == 1 then redis.call('ZREM', line, id) end
    end
  end
  if redis.call('ZCARD', line) > 0 then
    expire()
    serve()
    finish()
  end
  return { gone, now, version }
end

-- renew: process, want (-1: it is no group's), have, how many numbers held, born (of the guard, as the client knows it), these
-- numbers, then numbers that wait.
-- A lease that is over is not renewed: its permit may be another's by now. But if the guard was forgotten and made anew since,
-- permits that this client still holds count again, as far as the limit goes, and nobody else is let in for a lease.
-- Answers { now, version, next end, target, limit, held, born, how many were lost, these numbers, then for each waiter:
--   number, token (0: still waits; -1: it is not in line any more), how many, end of the lease }.
if verb == 'renew' then
  local process, count, lost, served, target = ARGV[2], tonumber(ARGV[5]), {}, {}, -1
  local forgotten = ARGV[6] ~= '0' and tonumber(ARGV[6]) ~= born

  expire()
  if forgotten and now >= grace and born + lease > now then -- also if this one only waits: others may hold
    grace = born + lease
    redis.call('HSET', cfg, 'grace', text(grace))
  end
  for i = 7, 6 + count do
    local id = process .. ':' .. ARGV[i]
    if redis.call('ZADD', held, 'XX', 'CH', now + lease, id) == 0 and not redis.call('ZSCORE', held, id) then
      if forgotten and redis.call('ZCARD', held) < limit then
        redis.call('ZADD', held, now + lease, id)
        redis.call('HSET', info, id, 'h 0 1 - 0 restored')
      else
        lost[#lost + 1] = tonumber(ARGV[i])
      end
    end
  end
  for i = 7 + count, #ARGV do
    local id = process .. ':' .. ARGV[i]
    local n, few, who = string.match(redis.call('HGET', info, id) or '', '^w (%d+) (%d+) %d+ (.*)$')
    if n then redis.call('HSET', info, id, 'w ' .. n .. ' ' .. few .. ' ' .. text(now + lease) .. ' ' .. who) end
  end
  if redis.call('ZCARD', line) > 0 then serve() end
  for i = 7 + count, #ARGV do
    local id = process .. ':' .. ARGV[i]
    local entry, ends = redis.call('HGET', info, id), redis.call('ZSCORE', held, id)
    local t, k = string.match(entry or '', '^h (%d+) (%d+)')
    served[#served + 1] = tonumber(ARGV[i])
    served[#served + 1] = t and tonumber(t) or entry and 0 or -1
    served[#served + 1] = k and tonumber(k) or 0
    served[#served + 1] = tonumber(ends or 0)
  end
  if ARGV[3] ~= '-1' then target = demand(process, tonumber(ARGV[3]), tonumber(ARGV[4]), false) end
  finish()
  local reply = { now, version, next_end(), target, limit, redis.call('ZCARD', held), born, #lost }
  for i = 1, #lost do reply[#reply + 1] = lost[i] end
  for i = 1, #served do reply[#reply + 1] = served[i] end
  return reply
end

-- look: answers { now, version, limit, held, waiting, next end }. Changes nothing.
if verb == 'look' then
  return { now, version, limit, redis.call('ZCOUNT', held, '(' .. text(now), '+inf'), redis.call('ZCARD', line), next_end() }
end

-- holders: from, how many. Answers { now, how many there are, then id, end of the lease, info of each }, soonest end first.
if verb == 'holders' then
  local list = redis.call('ZRANGE', held, ARGV[2], tonumber(ARGV[2]) + tonumber(ARGV[3]) - 1, 'WITHSCORES')
  local reply = { now, redis.call('ZCARD', held) }
  for i = 1, #list, 2 do
    reply[#reply + 1] = list[i]
    reply[#reply + 1] = tonumber(list[i + 1])
    reply[#reply + 1] = redis.call('HGET', info, list[i]) or ''
  end
  return reply
end

-- audit: answers { now, limit, held, waiting, overdue, permits without a description, descriptions of nothing,
-- waiters without a description, keys without a time to live }. All but the first four are 0 in a sound guard.
if verb == 'audit' then
  local overdue = redis.call('ZCOUNT', held, '-inf', now)
  local nameless, idle, lineless, eternal = 0, 0, 0, 0
  for _, id in ipairs(redis.call('ZRANGE', held, 0, -1)) do
    if string.sub(redis.call('HGET', info, id) or '', 1, 1) ~= 'h' then nameless = nameless + 1 end
  end
  for _, id in ipairs(redis.call('ZRANGE', line, 0, -1)) do
    if string.sub(redis.call('HGET', info, id) or '', 1, 1) ~= 'w' then lineless = lineless + 1 end
  end
  for _, id in ipairs(redis.call('HKEYS', info)) do
    if not redis.call('ZSCORE', held, id) and not redis.call('ZSCORE', line, id) then idle = idle + 1 end
  end
  for i = 1, 5 do
    if redis.call('PTTL', KEYS[i]) == -1 then eternal = eternal + 1 end
  end
  return { now, limit, redis.call('ZCARD', held), redis.call('ZCARD', line), overdue, nameless, idle, lineless, eternal }
end

-- evict: id, operator, why. An operator takes a permit away; its process is told (x <number>), and it is written down in
-- KEYS[6], a list: time, operator, why, id, info. Answers 1, or 0 if it is not held.
if verb == 'evict' then
  local entry = redis.call('HGET', info, ARGV[2]) or ''
  local process, number = split(ARGV[2])
  if redis.call('ZREM', held, ARGV[2]) == 0 then return 0 end
  redis.call('HDEL', info, ARGV[2])
  redis.call('LPUSH', KEYS[6], text(now) .. '\n' .. ARGV[3] .. '\n' .. ARGV[4] .. '\n' .. ARGV[2] .. '\n' .. entry)
  redis.call('LTRIM', KEYS[6], 0, 999)
  redis.call('PEXPIRE', KEYS[6], 30 * 86400000)
  if process then redis.call('PUBLISH', bell(process), 'x ' .. text(number)) end
  expire()
  serve()
  finish()
  return 1
end

-- change: version, field, value ... As in every script; who waits may fit now.
if verb == 'change' then
  local answer = change()
  if answer[1] == 1 then
    limit = tonumber(redis.call('HGET', cfg, 'limit'))
    expire()
    serve()
    finish()
  end
  return answer
end
return redis.error_reply('ERR weir: unknown verb')
