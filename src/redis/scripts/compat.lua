-- Names as the original has them, so that its programs and weir's share a lock or a window. Not for clusters: windows are
-- keys of different slots. common.lua does not precede it. SPDX-License-Identifier: MIT
local verb = ARGV[1]
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

-- lock: KEYS[1] = lock:<name>; owner, lease in ms. Answers { 1 locked / 0 held by another, token, now, ms left }.
if verb == 'lock' then
  local owner = redis.call('GET', KEYS[1])
  if owner and owner ~= ARGV[2] then return { 0, 0, now, redis.call('PTTL', KEYS[1]) } end
  redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
  return { 1, now, now, tonumber(ARGV[3]) }
end
-- unlock: owner. Answers 1 unlocked, 0 held by another, 2 nobody held it.
if verb == 'unlock' then
  local owner = redis.call('GET', KEYS[1])
  if not owner then return 2 end
  if owner ~= ARGV[2] then return 0 end
  redis.call('DEL', KEYS[1])
  return 1
end
-- extend: owner, lease in ms. Only the owner's. Answers 1, or 0: it is lost.
if verb == 'extend' then
  if redis.call('GET', KEYS[1]) ~= ARGV[2] then return 0 end
  return redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
-- window: KEYS[1] = <name>; limit, duration in ms, how many, 1 weighted / 0 fixed. Counters are <name>:<begin in ms>.
-- Answers { 1 allowed / 0 not, now, begin of the next window }.
if verb == 'window' then
  local limit, duration, n = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
  local ms = math.floor(now / 1000)
  local begin = ms - ms % duration
  local key = KEYS[1] .. ':' .. string.format('%.0f', begin)
  local current, last = tonumber(redis.call('GET', key) or 0) + n, 0
  local life = duration
  if ARGV[5] == '1' then
    last = tonumber(redis.call('GET', KEYS[1] .. ':' .. string.format('%.0f', begin - duration)) or 0)
    life = duration + (duration - (ms - begin))
  end
  if math.floor(current + last * (1 - (ms - begin) / duration)) > limit then return { 0, now, (begin + duration) * 1000 } end
  redis.call('SET', key, string.format('%.0f', current), 'PX', life)
  return { 1, now, (begin + duration) * 1000 }
end
return redis.error_reply('ERR weir: unknown verb')
