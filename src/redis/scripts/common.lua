-- What every script of weir begins with: the clock of the server, and the settings of the guard.
-- KEYS[1] is the hash of settings, ARGV[1] the verb. Times are microseconds of the server's clock.
-- See docs/redis.md. SPDX-License-Identifier: MIT
local cfg, verb = KEYS[1], ARGV[1]
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

-- A guard that the server does not know (any more): the client opens it again, with the version it has seen.
local UNKNOWN = { -1 }

-- What settings may be. Those that are not here may be missing, and are 0 then.
local MANY = 2147483647
local RANGE = { version = { 1, 2 ^ 53 }, keep = { 1, 2 ^ 53 }, kind = { 1, 8 }, mode = { 0, 5 }, limit = { 0, MANY }, waiters = { 0, MANY },
  burst = { 0, MANY }, lease = { 20000, 86400000000 }, period = { 1, 2 ^ 50 } }

-- A setting that is none was not written by weir: an error names it, rather than that the guard is full, or open.
local function foreign(name, value)
  local range = RANGE[name] or { 0, 2 ^ 53 }
  local is = value and "'" .. string.sub(value, 1, 40) .. "'" or 'missing'
  return redis.error_reply((string.gsub(string.format('FOREIGN %s: field %s is %s: weir writes whole numbers from %.0f to %.0f',
    cfg, name, is, range[1], range[2]), '%c', '?')))
end

-- The version, `keep`, and these; or nil and what to answer.
local function settings(...)
  local names = { 'version', 'keep', ... }
  local values = redis.call('HMGET', cfg, unpack(names))
  if not values[1] then return nil, UNKNOWN end
  for i = 1, #names do
    local text, range = values[i], RANGE[names[i]]
    local value = text and string.match(text, '^%d+$') and tonumber(text) or (not text and not range and 0)
    if not value or range and (value < range[1] or value > range[2]) then return nil, foreign(names[i], text) end
    values[i] = value
  end
  return values
end

-- Whoever uses the guard keeps its settings alive.
local function touch(keep) redis.call('PEXPIRE', cfg, keep) end

-- ARGV[2] is the version the client has seen, ARGV[3..] are fields and values. Answers the present version, and
-- whether the change was made: only from that version.
local function change()
  local version = tonumber(redis.call('HGET', cfg, 'version'))
  if not version then return nil end
  if version ~= tonumber(ARGV[2]) then return { 0, version } end
  for i = 3, #ARGV, 2 do redis.call('HSET', cfg, ARGV[i], ARGV[i + 1]) end
  redis.call('HSET', cfg, 'version', version + 1)
  return { 1, version + 1 }
end
