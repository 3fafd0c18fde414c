-- Opens a guard: makes it if there is none, and answers its settings.
--   ARGV: 'open', version (the highest one this client has seen; 0: none), make (0: only look), keep in ms, field, value ...
-- A server that has an older version than the client has lost it (fail-over, restart): it gets the newer one back. A client
-- with older settings, or with none, changes nothing. A guard that a client knew and the server did not any more lets
-- nobody in for the time of a lease (`grace`): those who still hold permits of it renew them meanwhile.
-- Answers { made, now, field, value, ... }, or { -1 } if there is none; an error (FOREIGN) if a setting is none.
local version = redis.call('HGET', cfg, 'version')
if version and not tonumber(version) then return foreign('version', version) end
version = tonumber(version)
local known = tonumber(ARGV[2])
local make = ARGV[3] == '1' and (not version or version < known)
if not version and not make then return UNKNOWN end
if make then
  for i = 5, #ARGV, 2 do redis.call('HSET', cfg, ARGV[i], ARGV[i + 1]) end
  redis.call('HSET', cfg, 'version', math.max(known, 1), 'keep', ARGV[4])
  if not version then
    local initial, lease = tonumber(redis.call('HGET', cfg, 'initial')) or 0, tonumber(redis.call('HGET', cfg, 'lease')) or 0
    redis.call('HSET', cfg, 'born', now)
    if initial > 0 then redis.call('HSET', cfg, 'first', now + initial) end
    if known > 0 then redis.call('HSET', cfg, 'grace', now + lease) end
  end
end
local kind = redis.call('HGET', cfg, 'kind')
if kind == '4' then RANGE.limit = { 1, MANY } end
local set, why
if kind == '3' or kind == '4' then
  set, why = settings('kind', 'limit', 'period', 'mode', 'burst')
else
  set, why = settings('kind', 'limit', 'lease', 'waiters')
end
if not set then return why end
touch(set[2])
local all = redis.call('HGETALL', cfg)
table.insert(all, 1, now)
table.insert(all, 1, make and 1 or 0)
return all
