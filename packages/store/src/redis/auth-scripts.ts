import { redisScript } from './redis-client.ts'

/*
 * A record is a hash: d(ata), c (when it was consumed, by the clock of Redis), a (the attempt that consumed it), n (it was consumed again within
 * its grace), t (the attempt that took it; the record is gone for everybody else), e (how long it had left then), v:ATTEMPT (an attempt that was
 * taken back). An attempt is a random text that a repetition after a lost answer has again, so that it gets the same answer and nothing is used up
 * by a connection that broke. What was sent over that connection may still arrive, also after it was taken back; then it has no effect.
 *
 * A repetition writes as the first time did: WAIT is about the writes of its own connection, which is another one by then.
 *
 * All keys of one server have the same hash tag, so they are in one slot.
 */
/** A client relies on the write. */
const DURABLE = { isDurable: true }

const NOW = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)`

/** KEYS: record. Data and the time of consumption. */
export const GET = redisScript(`
local r = redis.call('HMGET', KEYS[1], 'd', 'c', 't')
if not r[1] or r[3] then return nil end
return { r[1], r[2] or '' }`)

const WRITE = `
if ARGV[3] == '1' and redis.call('EXISTS', KEYS[2]) == 1 then return 1 end
if redis.call('HEXISTS', KEYS[1], 't') == 1 then redis.call('DEL', KEYS[1]) end
redis.call('HSET', KEYS[1], 'd', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
if ARGV[3] == '1' then
  redis.call('SADD', KEYS[3], KEYS[1])
  if redis.call('PTTL', KEYS[3]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[3], ARGV[2]) end
end
return 1`

/** KEYS: record, mark of the revoked family, members of the family. ARGV: data, ttl, 1 with a family. */
export const PUT = redisScript(WRITE, DURABLE)

/**
 * The same, if the record has the data that was read. ARGV also: that data, empty for none. 0: it has not. No two writes have the same data: it is
 * sealed with a number of its own each time, so a record that has the new data was written by this call, whose answer was lost.
 */
export const UPDATE = redisScript(
  `
local r = redis.call('HMGET', KEYS[1], 'd', 't')
local data = r[1] and not r[2] and r[1] or ''
if data ~= ARGV[1] and data ~= ARGV[4] then return 0 end${WRITE}`,
  DURABLE,
)

/** KEYS: record. ARGV: attempt, how long a repetition is answered, and the record can be given back. */
export const TAKE = redisScript(`
local r = redis.call('HMGET', KEYS[1], 'd', 't', 'v:' .. ARGV[1])
if not r[1] or r[3] or (r[2] and r[2] ~= ARGV[1]) then return nil end
if not r[2] then
  local left = redis.call('PTTL', KEYS[1])
  redis.call('HSET', KEYS[1], 't', ARGV[1], 'e', left)
  if left > tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
end
return r[1]`)

/** Last, because a Redis that is full accepts it only after another write; then it does without. Only a record that is there can be used late. */
const VOID = `
if redis.call('EXISTS', KEYS[1]) == 1 then redis.pcall('HSET', KEYS[1], 'v:' .. ARGV[1], 1) end`

/** KEYS: record. ARGV: attempt. Gives back what this attempt took, or takes when it arrives late. */
export const UNTAKE = redisScript(
  `
local r = redis.call('HMGET', KEYS[1], 't', 'e')
local isOwn = r[1] == ARGV[1]
if isOwn then
  redis.call('HDEL', KEYS[1], 't', 'e')
  redis.call('PEXPIRE', KEYS[1], r[2])
end${VOID}
return isOwn and 1 or 0`,
  DURABLE,
)

/** KEYS: record. ARGV: attempt, grace. */
export const CONSUME = redisScript(
  `${NOW}
local r = redis.call('HMGET', KEYS[1], 'd', 'c', 'a', 't', 'v:' .. ARGV[1])
if not r[1] or r[4] or r[5] then return 'missing' end
if not r[2] or r[3] == ARGV[1] then
  redis.call('HSET', KEYS[1], 'c', r[2] or now, 'a', ARGV[1])
  return 'first'
end
return now - tonumber(r[2]) < tonumber(ARGV[2]) and 'again' or 'reused'`,
  DURABLE,
)

/**
 * KEYS: record, its successor, mark of the revoked family, members of the family, records to prolong. ARGV: attempt, grace, how long the
 * consumed record is kept, data and ttl of the successor.
 */
export const REPLACE = redisScript(
  `${NOW}
local r = redis.call('HMGET', KEYS[1], 'd', 'c', 'a', 't', 'v:' .. ARGV[1])
if not r[1] or r[4] or r[5] or redis.call('EXISTS', KEYS[3]) == 1 then return 'missing' end
local outcome = 'first'
if r[2] and r[3] ~= ARGV[1] then
  if now - tonumber(r[2]) >= tonumber(ARGV[2]) then return 'reused' end
  outcome = 'again'
  redis.call('HSET', KEYS[1], 'n', 1)
end
if not r[2] then
  redis.call('HSET', KEYS[1], 'c', now, 'a', ARGV[1])
  if redis.call('PTTL', KEYS[1]) > tonumber(ARGV[3]) then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
  -- It ends by itself soon, and the set must not grow with every refresh.
  redis.call('SREM', KEYS[4], KEYS[1])
end
redis.call('HSET', KEYS[2], 'd', ARGV[4])
redis.call('PEXPIRE', KEYS[2], ARGV[5])
redis.call('SADD', KEYS[4], KEYS[2])
if redis.call('PTTL', KEYS[4]) < tonumber(ARGV[5]) then redis.call('PEXPIRE', KEYS[4], ARGV[5]) end
for i = 5, #KEYS do redis.call('PEXPIRE', KEYS[i], ARGV[5]) end
return outcome`,
  DURABLE,
)

/**
 * KEYS: record; after REPLACE also its successor, mark of the revoked family, members of the family. ARGV: attempt, ttl of the record. Takes the
 * consumption by this attempt back, also one that arrives late, unless somebody has built on it.
 */
export const UNCONSUME = redisScript(
  `
local r = redis.call('HMGET', KEYS[1], 'd', 'a', 'n')
if KEYS[2] and (r[2] == ARGV[1] or not r[1]) then
  redis.call('DEL', KEYS[2])
  redis.call('SREM', KEYS[4], KEYS[2])
end
local isRevoked = KEYS[3] and redis.call('EXISTS', KEYS[3]) == 1
local isOwn = r[1] and r[2] == ARGV[1] and not r[3] and not isRevoked
if isOwn then
  redis.call('HDEL', KEYS[1], 'c', 'a')
  if KEYS[2] then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
    redis.call('SADD', KEYS[4], KEYS[1])
  end
end${VOID}
return isOwn and 1 or 0`,
  DURABLE,
)

export const REMOVE = redisScript(`return redis.call('DEL', KEYS[1])`)

/** KEYS: mark, mark of an attempt that was taken back. ARGV: attempt, ttl. Also a lock, whose holder is the attempt. */
export const ADD_ONCE = redisScript(
  `
if redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])`,
  DURABLE,
)

/** KEYS as ADD_ONCE. ARGV: attempt, how long it may arrive late. Takes the mark of this attempt back. */
export const UNADD = redisScript(
  `
local isOwn = redis.call('GET', KEYS[1]) == ARGV[1]
if isOwn then redis.call('DEL', KEYS[1]) end
redis.pcall('SET', KEYS[2], 1, 'PX', ARGV[2])
return isOwn and 1 or 0`,
  DURABLE,
)

/** KEYS: lock. ARGV: the attempt that holds it. */
export const RELEASE = redisScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`)

/** KEYS: mark of the revoked family, members of the family, index of all revocations. ARGV: family, ttl. */
export const REVOKE = redisScript(
  `${NOW}
redis.call('SET', KEYS[1], now, 'PX', ARGV[2])
-- A year is longer than any family lives.
redis.call('ZREMRANGEBYSCORE', KEYS[3], 0, now - 31536000000)
redis.call('ZADD', KEYS[3], now, ARGV[1])
if redis.call('PTTL', KEYS[3]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[3], ARGV[2]) end
for _, key in ipairs(redis.call('SMEMBERS', KEYS[2])) do redis.call('DEL', key) end
redis.call('DEL', KEYS[2])
return 1`,
  DURABLE,
)

export const IS_REVOKED = redisScript(`return redis.call('EXISTS', KEYS[1])`)

/** KEYS: index of all revocations. ARGV: since when, offset, size of a page, prefix of the marks. Family, milliseconds left and time of each. */
export const REVOKED_SINCE = redisScript(`
local found = redis.call('ZRANGEBYSCORE', KEYS[1], ARGV[1], '+inf', 'WITHSCORES', 'LIMIT', ARGV[2], ARGV[3])
local answer = {}
for i = 1, #found, 2 do
  answer[#answer + 1] = { found[i], redis.call('PTTL', ARGV[4] .. found[i]), found[i + 1] }
end
return answer`)
