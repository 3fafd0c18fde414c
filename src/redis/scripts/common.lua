-- What every script of weir begins with: the clock of the server, and the settings of the guard.
-- KEYS[1] is the hash of settings, ARGV[1] the verb. Times are microseconds of the server's clock.
-- See docs/redis.md. SPDX-License-Identifier: MIT
local cfg, verb = KEYS[1], ARGV[1]
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

-- A guard that the server does not know (any more): the client opens it again, with the version it has seen.
local function settings(...)
  local values = redis.call('HMGET', cfg, 'version', 'keep', ...)
  if not values[1] then return nil end
  for i = 1, #values do values[i] = tonumber(values[i]) or 0 end
  return values
end
local UNKNOWN = { -1 }

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
