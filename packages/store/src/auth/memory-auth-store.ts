import { type Clock, systemClock, type Timer } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import type { JsonObject } from '@thv/kernel/json'
import type { AuthRecordKind, AuthStore, Consumption, PutOptions, Replacement, RevocationListener } from './auth-store.ts'

export interface MemoryAuthStoreOptions {
  readonly clock?: Clock
  /** Of all kinds together. */
  readonly maxRecords?: number
  /** Of logins that have begun and not ended. */
  readonly maxPending?: number
}

interface Entry {
  readonly kind: AuthRecordKind
  readonly id: string
  /** The value as JSON: a third of the memory that an object takes. */
  text: string
  expiresAt: number
  family: string | undefined
  consumedAt: number | undefined
  consumedAtMonotonic: number
}

const SWEEP_MS = 60_000
const PENDING_KINDS: ReadonlySet<AuthRecordKind> = new Set(['interaction', 'pending'])

/** For one replica. Lost with the process. */
export function createMemoryAuthStore(options: MemoryAuthStoreOptions = {}): AuthStore {
  const { clock = systemClock, maxRecords = 1_000_000, maxPending = 10_000 } = options
  const records = new Map<AuthRecordKind, Map<string, Entry>>()
  /** Most have one record beside those that have their name: a refresh token. */
  const families = new Map<string, Entry | Set<Entry>>()
  const revoked = new Map<string, number>()
  /** Each holder removes its own. */
  const locks = new Map<string, { readonly until: number }>()
  const listeners = new Set<RevocationListener>()
  let size = 0
  let timer: Timer | undefined
  let closed = false

  const ofKind = (kind: AuthRecordKind): Map<string, Entry> => {
    const map = records.get(kind) ?? new Map<string, Entry>()
    records.set(kind, map)
    return map
  }
  const isOver = ({ expiresAt }: Entry) => expiresAt <= clock.monotonic()

  function find(kind: AuthRecordKind, id: string): Entry | undefined {
    const entry = ofKind(kind).get(id)
    if (entry === undefined || !isOver(entry)) return entry
    drop(kind, id)
    return undefined
  }

  function drop(kind: AuthRecordKind, id: string): void {
    const entry = ofKind(kind).get(id)
    if (entry === undefined) return
    ofKind(kind).delete(id)
    size--
    leave(entry)
  }

  /** The same text for all records of a family: each of them would bring its own. */
  function nameOf(family: string | undefined): string | undefined {
    return family === undefined ? undefined : (ofKind('grant').get(family)?.id ?? family)
  }

  /** Records with the name of their family are found without it. */
  function join(entry: Entry): void {
    const { family, id } = entry
    if (family === undefined || id === family) return
    const members = families.get(family)
    if (members === undefined) families.set(family, entry)
    else if (members instanceof Set) members.add(entry)
    else families.set(family, new Set([members, entry]))
  }

  function leave(entry: Entry): void {
    const { family } = entry
    const members = family === undefined ? undefined : families.get(family)
    if (family === undefined || members === undefined) return
    if (members === entry) families.delete(family)
    if (!(members instanceof Set)) return
    members.delete(entry)
    const [last] = members
    if (last === undefined) families.delete(family)
    else if (members.size === 1) families.set(family, last)
  }

  function ofFamily(family: string): readonly Entry[] {
    const members = families.get(family)
    const others = members === undefined ? [] : members instanceof Set ? [...members] : [members]
    const named = [...records.values()].flatMap((map) => map.get(family) ?? [])
    return [...others, ...named.filter((entry) => entry.family === family)]
  }

  function insert(entry: Entry): void {
    const { kind, id } = entry
    const map = ofKind(kind)
    if (size >= maxRecords || (PENDING_KINDS.has(kind) && map.size >= maxPending)) sweep()
    if (size >= maxRecords || (PENDING_KINDS.has(kind) && map.size >= maxPending))
      throw new ThvError('store_unavailable', `the store of the authorization server is full: no room for another ${kind}`)
    map.set(id, entry)
    size++
    join(entry)
    timer ??= closed ? undefined : clock.setTimer(SWEEP_MS, sweepLater)
  }

  function sweep(): void {
    for (const [kind, map] of records) for (const [id, entry] of map) if (isOver(entry)) drop(kind, id)
    for (const [family, until] of revoked) if (until <= clock.monotonic()) revoked.delete(family)
  }

  function sweepLater(): void {
    timer = undefined
    sweep()
    if (!closed && size + revoked.size > 0) timer = clock.setTimer(SWEEP_MS, sweepLater)
  }

  const isRevoked = (family: string | undefined) => family !== undefined && (revoked.get(family) ?? 0) > clock.monotonic()

  function consumption(entry: Entry | undefined, graceMs: number): Consumption {
    if (entry === undefined) return 'missing'
    if (entry.consumedAt === undefined) return 'first'
    return clock.monotonic() - entry.consumedAtMonotonic < graceMs ? 'again' : 'reused'
  }

  function markConsumed(entry: Entry): void {
    entry.consumedAt = clock.now()
    entry.consumedAtMonotonic = clock.monotonic()
  }

  function put(kind: AuthRecordKind, id: string, { value, ttlMs, family }: Replacement['to'] | (PutOptions & { value: JsonObject })): void {
    const before = find(kind, id)
    const expiresAt = clock.monotonic() + ttlMs
    const text = JSON.stringify(value)
    if (before === undefined) insert({ kind, id, text, expiresAt, family: nameOf(family), consumedAt: undefined, consumedAtMonotonic: 0 })
    else Object.assign(before, { text, expiresAt })
  }

  return {
    async get(kind, id) {
      const entry = find(kind, id)
      return entry && { value: parsed(entry), consumedAt: entry.consumedAt }
    },
    async put(kind, id, record) {
      if (!(record.ttlMs > 0)) throw new RangeError(`a record needs a lifetime above 0, not ${record.ttlMs}`)
      if (!isRevoked(record.family)) put(kind, id, record)
    },
    async update(kind, id, { ttlMs, family }, change) {
      if (!(ttlMs > 0)) throw new RangeError(`a record needs a lifetime above 0, not ${ttlMs}`)
      const entry = find(kind, id)
      const value = change(entry && parsed(entry))
      if (value !== undefined && !isRevoked(family)) put(kind, id, { value, ttlMs, family })
    },
    async take(kind, id) {
      const entry = find(kind, id)
      drop(kind, id)
      return entry && parsed(entry)
    },
    async consume(kind, id, { graceMs }) {
      const entry = find(kind, id)
      const outcome = consumption(entry, graceMs)
      if (entry !== undefined && outcome === 'first') markConsumed(entry)
      return outcome
    },
    async replace({ from, to, prolonged }) {
      const entry = isRevoked(to.family) ? undefined : find(from.kind, from.id)
      const outcome = consumption(entry, from.graceMs)
      if (entry === undefined || outcome === 'reused') return outcome
      put(to.kind, to.id, to) // first: it throws when there is no room
      if (outcome === 'first') {
        markConsumed(entry)
        entry.expiresAt = Math.min(entry.expiresAt, clock.monotonic() + from.keptMs)
      }
      for (const kind of prolonged) {
        const other = find(kind, to.family)
        if (other !== undefined) other.expiresAt = clock.monotonic() + to.ttlMs
      }
      return outcome
    },
    async remove(kind, id) {
      drop(kind, id)
    },
    async addOnce(kind, id, ttlMs) {
      if (find(kind, id) !== undefined) return false
      const expiresAt = clock.monotonic() + ttlMs
      insert({ kind, id, text: '{}', expiresAt, family: undefined, consumedAt: undefined, consumedAtMonotonic: 0 })
      return true
    },
    async lock(name, ttlMs) {
      const now = clock.monotonic()
      const holder = { until: now + ttlMs }
      if ((locks.get(name)?.until ?? 0) > now) return undefined
      locks.set(name, holder)
      const release = async () => {
        if (locks.get(name) === holder) locks.delete(name)
      }
      return { [Symbol.asyncDispose]: release }
    },
    async revokeFamily(family, ttlMs) {
      revoked.set(family, clock.monotonic() + ttlMs)
      timer ??= closed ? undefined : clock.setTimer(SWEEP_MS, sweepLater)
      for (const { kind, id } of ofFamily(family)) drop(kind, id)
      for (const listener of listeners) listener(family, ttlMs)
    },
    async isRevoked(family) {
      return isRevoked(family)
    },
    observeRevocations(listener) {
      listeners.add(listener)
      for (const [family, until] of revoked) if (until > clock.monotonic()) listener(family, until - clock.monotonic())
      return { [Symbol.dispose]: () => void listeners.delete(listener) }
    },
    async [Symbol.asyncDispose]() {
      closed = true
      timer?.cancel()
      for (const map of records.values()) map.clear()
      families.clear()
      revoked.clear()
      locks.clear()
      size = 0
    },
  }
}

function parsed({ text }: Entry): JsonObject {
  return JSON.parse(text) as JsonObject
}
