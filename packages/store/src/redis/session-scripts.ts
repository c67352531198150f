import { SHARE_OF_FREE } from '../fair-share.ts'
import { redisScript } from './redis-client.ts'

/*
 * A session is a hash: o(wner), v(ersion), t (lifetime in ms), e (its end by the clock of Redis), d(ata), p (key of the index of its party; one
 * of an older version has none). KEYS[1] is the session, KEYS[2] the index of all sessions by their end. A key lives a little longer than its
 * session, so that the end can be reported with its data.
 */
const NOW = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function live(key, owner)
  local s = redis.call('HMGET', key, 'o', 'e', 'v', 't', 'd', 'p')
  if not s[1] or not s[2] or s[1] ~= owner or tonumber(s[2]) <= now then return nil end
  return s
end
local function prolong(ttl, party)
  redis.call('HSET', KEYS[1], 't', ttl, 'e', now + ttl)
  redis.call('PEXPIRE', KEYS[1], ttl + 120000)
  redis.call('ZADD', KEYS[2], now + ttl, KEYS[1])
  if not party then return end
  redis.call('ZADD', party, now + ttl, KEYS[1])
  if redis.call('PTTL', party) < ttl + 120000 then redis.call('PEXPIRE', party, ttl + 120000) end
end`

/** ARGV: owner, ttl, data, most sessions, index of the party. 1 created, 0 exists, -1 full, for this party at least: see mayHoldMore. */
export const CREATE = redisScript(`${NOW}
local e = redis.call('HGET', KEYS[1], 'e')
if e and tonumber(e) > now then return 0 end
local free = tonumber(ARGV[4]) - redis.call('ZCOUNT', KEYS[2], '(' .. now, '+inf')
if redis.call('ZCOUNT', ARGV[5], '(' .. now, '+inf') >= ${SHARE_OF_FREE} * free then return -1 end
-- The first write decides whether a full Redis refuses the script, and DEL is never refused.
if e then redis.call('DEL', KEYS[1]) end
redis.call('HSET', KEYS[1], 'o', ARGV[1], 'v', 1, 'd', ARGV[3], 'p', ARGV[5])
prolong(tonumber(ARGV[2]), ARGV[5])
-- Not all users of a store report ends, so what has ended leaves the indexes here too, once its key is gone.
redis.call('ZREMRANGEBYSCORE', ARGV[5], '-inf', now)
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now - 120000)
return 1`)

/** ARGV: owner. Version, data and the milliseconds left; nil when there is none. */
export const GET = redisScript(`${NOW}
local s = live(KEYS[1], ARGV[1])
if not s then return nil end
return { s[3], s[5], tonumber(s[2]) - now, s[4] }`)

/** ARGV: owner, ttl or an empty text for the one it has. */
export const TOUCH = redisScript(`${NOW}
local s = live(KEYS[1], ARGV[1])
if not s then return 0 end
prolong(tonumber(ARGV[2]) or tonumber(s[4]), s[6])
return 1`)

/** ARGV: owner, expected version, data. */
export const UPDATE = redisScript(`${NOW}
local s = live(KEYS[1], ARGV[1])
if not s then return nil end
if s[3] ~= ARGV[2] then return { 0, s[3], s[5] } end
redis.call('HSET', KEYS[1], 'v', tonumber(s[3]) + 1, 'd', ARGV[3])
prolong(tonumber(s[4]), s[6])
return { 1 }`)

/** ARGV: owner. */
export const DELETE = redisScript(`${NOW}
local s = live(KEYS[1], ARGV[1])
if not s then return 0 end
redis.call('DEL', KEYS[1])
redis.call('ZREM', KEYS[2], KEYS[1])
if s[6] then redis.call('ZREM', s[6], KEYS[1]) end
return 1`)

/** KEYS: any, index. Sessions that ended, each given out once: key, owner, version, data. */
export const SWEEP = redisScript(`${NOW}
local ended = {}
for _, key in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, 100)) do
  redis.call('ZREM', KEYS[2], key)
  local s = redis.call('HMGET', key, 'o', 'v', 'd', 'e')
  if s[1] and s[4] and tonumber(s[4]) <= now then
    redis.call('DEL', key)
    ended[#ended + 1] = { key, s[1], s[2], s[3] }
  end
end
return ended`)

export const SIZE = redisScript(`${NOW}
return redis.call('ZCOUNT', KEYS[2], '(' .. now, '+inf')`)
