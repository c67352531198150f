import { type Clock, systemClock } from '@thv/kernel/clock'
import { ExpirySlots, type Slotted } from './expiry-slots.ts'
import { type Held, Holders } from './holders.ts'
import type { CreateOutcome, EndListener, JsonValue, Session, SessionRef, SessionStore, UpdateOutcome } from './session-store.ts'

export interface MemorySessionStoreOptions {
  readonly clock?: Clock
  readonly maxSessions?: number
}

interface Entry<T extends JsonValue> extends SessionRef, Slotted, Held {
  value: T
  version: number
  ttlMs: number
}

/** For one replica. Lost with the process. What has expired is never seen again, and given back to the system a little later. */
export function createMemorySessionStore<T extends JsonValue>(options: MemorySessionStoreOptions = {}): SessionStore<T> {
  const { clock = systemClock, maxSessions = 10_000 } = options
  if (!Number.isInteger(maxSessions) || maxSessions < 1) throw new RangeError(`maxSessions must be at least 1, not ${maxSessions}`)
  const entries = new Map<string, Entry<T>>()
  const holders = new Holders<Entry<T>>()
  const listeners: EndListener<T>[] = []
  const expiry = new ExpirySlots<Entry<T>>(clock, (entry, now) => {
    if (!isExpired(entry, now)) return expiresAt(entry)
    entries.delete(entry.id)
    holders.delete(entry)
    tell(entry, 'expired')
    return undefined
  })

  function tell(entry: Entry<T>, why: 'expired' | 'evicted'): void {
    for (const listener of listeners) listener(sessionOf(entry), why)
  }

  function find({ id, owner }: SessionRef): Entry<T> | undefined {
    const entry = entries.get(id)
    if (entry === undefined || entry.owner !== owner || isExpired(entry, clock.monotonic())) return undefined
    return entry
  }

  function use(entry: Entry<T>): void {
    entry.usedAt = clock.monotonic()
    holders.used(entry)
  }

  function touchNow(ref: SessionRef, ttlMs?: number): boolean {
    const entry = find(ref)
    if (entry === undefined) return false
    use(entry)
    if (ttlMs !== undefined) entry.ttlMs = ttlMs
    return true
  }

  function remove(entry: Entry<T>): void {
    entries.delete(entry.id)
    holders.delete(entry)
    expiry.delete(entry)
  }

  function makeRoom(now: number, isBusy: (id: string) => boolean): boolean {
    if (entries.size < maxSessions) return true
    const victim = holders.victim((entry) => !isExpired(entry, now) && isBusy(entry.id))
    if (victim === undefined) return false
    remove(victim)
    tell(victim, isExpired(victim, now) ? 'expired' : 'evicted')
    return true
  }

  return {
    async create({ id, owner, value, party = owner }, ttlMs, isBusy = () => false): Promise<CreateOutcome> {
      if (!(ttlMs > 0)) throw new RangeError(`a session needs a lifetime above 0, not ${ttlMs}`)
      const now = clock.monotonic()
      const before = entries.get(id)
      if (before !== undefined && !isExpired(before, now)) return 'exists'
      if (before !== undefined) {
        remove(before)
        tell(before, 'expired')
      }
      if (!makeRoom(now, isBusy)) return 'full'
      const entry: Entry<T> = { id, owner, value, party, version: 1, ttlMs, usedAt: now, slot: 0, earlier: undefined, later: undefined }
      entries.set(id, entry)
      holders.add(entry)
      expiry.add(entry, ttlMs)
      return 'created'
    },

    async get(ref): Promise<Session<T> | undefined> {
      const entry = find(ref)
      return entry && sessionOf(entry)
    },

    touch: async (ref, ttlMs) => touchNow(ref, ttlMs),
    touchNow,

    async update(ref, value, expectedVersion): Promise<UpdateOutcome<T>> {
      const entry = find(ref)
      if (entry === undefined) return { outcome: 'missing' }
      if (entry.version !== expectedVersion) return { outcome: 'conflict', session: sessionOf(entry) }
      entry.value = value
      entry.version++
      use(entry)
      return { outcome: 'updated', session: sessionOf(entry) }
    },

    async delete(ref): Promise<boolean> {
      const entry = find(ref)
      if (entry) remove(entry)
      return entry !== undefined
    },

    onEnded(listener): void {
      listeners.push(listener)
    },

    async size(): Promise<number> {
      const now = clock.monotonic()
      let count = 0
      for (const entry of entries.values()) if (!isExpired(entry, now)) count++
      return count
    },

    async close(): Promise<void> {
      expiry.close()
      entries.clear()
      holders.clear()
    },
  }
}

function expiresAt({ usedAt, ttlMs }: { usedAt: number; ttlMs: number }): number {
  return usedAt + ttlMs
}

function isExpired(entry: { usedAt: number; ttlMs: number }, now: number): boolean {
  return now >= expiresAt(entry)
}

function sessionOf<T extends JsonValue>({ id, owner, value, version }: Entry<T>): Session<T> {
  return { id, owner, value, version }
}
