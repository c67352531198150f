import { createBackoff } from '@thv/kernel/backoff'
import { type Clock, systemClock } from '@thv/kernel/clock'
import { createSingleFlight } from '@thv/kernel/single-flight'
import type { AuthStore } from '@thv/store/auth/auth-store'
import type { RecordCipher } from '@thv/store/redis/record-cipher'
import type { UpstreamKey, UpstreamLogin, UpstreamRefresher, UpstreamTokenResult, UpstreamTokens } from '../upstream-tokens.ts'
import { FamilyLogins } from './family-logins.ts'
import { type RefreshOutcome, refreshRow, removeRow } from './refresh-row.ts'
import { CachedRow, RowCache } from './row-cache.ts'
import { isExpired, refreshAt, rowId, rowOf, type UpstreamRow } from './upstream-row.ts'
import { createVaultRows, type VaultRows } from './vault-rows.ts'

export interface UpstreamVaultOptions {
  readonly store: AuthStore
  /** Seals the rows. Asked for at each use, as secrets are replaced. */
  readonly cipher: () => RecordCipher
  readonly refreshers: readonly UpstreamRefresher[]
  readonly clock?: Clock
  /** How long a family lives without a refresh. */
  readonly familyMs?: number
  /** The address where the user of a family connects a provider. */
  readonly connectUrl?: ((key: UpstreamKey, family: string) => string) | undefined
  /** For audit and log. The error never holds a token. */
  readonly onRefreshFailed?: (key: UpstreamKey, failure: 'ended' | 'unavailable', reason: unknown) => void
}

/** How long a backend's rejection of a fresh token is believed, and how often one leads to a refresh. */
const FORCED_EVERY_MS = 60_000

/** Tokens of users at upstream providers: sealed in the store, near at hand in this process, refreshed before they end. */
export class UpstreamVault implements UpstreamTokens {
  readonly #rows: VaultRows
  readonly #refreshers: ReadonlyMap<string, UpstreamRefresher>
  readonly #clock: Clock
  readonly #onRefreshFailed: NonNullable<UpstreamVaultOptions['onRefreshFailed']>
  readonly #connectUrl: UpstreamVaultOptions['connectUrl']
  readonly #near: RowCache
  readonly #families: FamilyLogins
  readonly #reads = createSingleFlight<string, CachedRow | undefined>()
  readonly #refreshes = createSingleFlight<string, RefreshOutcome>()
  readonly #closing = new AbortController()

  constructor(options: UpstreamVaultOptions) {
    const { store, cipher, refreshers, clock = systemClock, familyMs, onRefreshFailed = () => {}, connectUrl } = options
    this.#connectUrl = connectUrl
    this.#families = new FamilyLogins(store, clock, familyMs)
    this.#rows = createVaultRows({ store, cipher, clock, signal: this.#closing.signal })
    this.#refreshers = new Map(refreshers.map((refresher) => [refresher.provider, refresher]))
    this.#clock = clock
    this.#onRefreshFailed = onRefreshFailed
    this.#near = new RowCache(clock)
  }

  async save(login: UpstreamLogin): Promise<void> {
    const before = await this.#rows.read(login)
    const row = rowOf(login, before, this.#clock.now())
    await this.#rows.write(login, row)
    this.#near.set(rowId(login), new CachedRow(row, this.#clock.monotonic()))
  }

  use(key: UpstreamKey): UpstreamTokenResult | Promise<UpstreamTokenResult> {
    const id = rowId(key)
    const cached = this.#near.get(id)
    if (cached === undefined || this.#near.isOld(cached)) return this.#readAndUse(key, id, cached)
    if (this.#near.isDue(cached)) this.#read(key, id).catch(() => {}) // what is near is good enough for now
    return this.#judge(key, id, cached)
  }

  rejected(key: UpstreamKey, accessToken: string): void {
    const cached = this.#near.get(rowId(key))
    if (cached === undefined || cached.row.accessToken !== accessToken) return // another one is there already
    cached.rejectedAt = this.#clock.monotonic()
  }

  needsLogin(family: string, provider: string): void {
    this.#families.end(family, provider)
  }

  join(family: string, provider: string): Promise<void> {
    return this.#families.join(family, provider)
  }

  hasJoined(family: string, provider: string): boolean | Promise<boolean> {
    return this.#families.hasJoined(family, provider)
  }

  connectUrl(key: UpstreamKey, family: string): string | undefined {
    return this.#connectUrl?.(key, family)
  }

  async connected(account: string): Promise<readonly string[]> {
    const providers = [...this.#refreshers.keys()]
    const rows = await Promise.all(providers.map((provider) => this.#rows.read({ account, provider })))
    return providers.filter((_, index) => rows[index] !== undefined)
  }

  async remove(key: UpstreamKey): Promise<void> {
    await removeRow(key, { rows: this.#rows, clock: this.#clock, signal: this.#closing.signal })
    this.#near.delete(rowId(key))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new Error('the vault is closed'))
    this.#near.clear()
  }

  async #readAndUse(key: UpstreamKey, id: string, old: CachedRow | undefined): Promise<UpstreamTokenResult> {
    let cached = old
    try {
      cached = await this.#read(key, id)
    } catch {
      if (old === undefined) return UNAVAILABLE // known tokens survive a store that is away
    }
    return cached === undefined ? MISSING : await this.#judge(key, id, cached)
  }

  #read(key: UpstreamKey, id: string): Promise<CachedRow | undefined> {
    return this.#reads.run(id, async () => {
      const row = await this.#rows.read(key)
      return this.#keep(id, row)
    })
  }

  /** A row with the same tokens keeps what this process knows about them. */
  #keep(id: string, row: UpstreamRow | undefined): CachedRow | undefined {
    const known = this.#near.get(id)
    if (row === undefined) this.#near.delete(id)
    else if (known?.row.accessToken === row.accessToken) known.seen(row, this.#clock.monotonic())
    else this.#near.set(id, new CachedRow(row, this.#clock.monotonic()))
    return this.#near.get(id)
  }

  #judge(key: UpstreamKey, id: string, cached: CachedRow): UpstreamTokenResult | Promise<UpstreamTokenResult> {
    const { row } = cached
    const now = this.#clock.now()
    if (isExpired(row, now) || cached.rejectedAt !== undefined) return this.#replace(key, id, cached)
    if (refreshAt(row) <= now && row.refreshToken !== undefined && cached.mayRefresh(this.#clock.monotonic()))
      void this.#refresh(key, id, cached)
    return cached.result
  }

  /** The token is of no use any more: there must be another one. */
  async #replace(key: UpstreamKey, id: string, cached: CachedRow): Promise<UpstreamTokenResult> {
    const { row, rejectedAt } = cached
    const now = this.#clock.monotonic()
    if (rejectedAt !== undefined && !isExpired(row, this.#clock.now())) {
      const forced = this.#near.forcedAt(id)
      // The tokens of a forced refresh were rejected too: only a login can help. Later it may be tried again.
      if (forced !== undefined && now - forced < FORCED_EVERY_MS) return ENDED
      this.#near.force(id)
    } else if (!cached.mayRefresh(now)) return { kind: 'unavailable', retryAfterMs: cached.waitMs(now) }
    const outcome = await this.#refresh(key, id, cached)
    if (outcome.kind === 'row') return new CachedRow(outcome.row, now).result
    return outcome.kind === 'failed'
      ? { kind: 'unavailable', retryAfterMs: cached.waitMs(this.#clock.monotonic()) }
      : { kind: outcome.kind }
  }

  /** Never rejects. */
  #refresh(key: UpstreamKey, id: string, cached: CachedRow): Promise<RefreshOutcome> {
    return this.#refreshes.run(id, async () => {
      const context = { rows: this.#rows, refresher: this.#refreshers.get(key.provider), clock: this.#clock, signal: this.#closing.signal }
      const outcome = await refreshRow(key, cached.row, context)
      if (outcome.kind === 'row') this.#near.set(id, new CachedRow(outcome.row, this.#clock.monotonic()))
      else if (outcome.kind === 'missing') this.#near.delete(id)
      else if (outcome.kind === 'ended') cached.seen({ ...cached.row, refreshToken: undefined }, this.#clock.monotonic())
      else cached.failed(this.#clock.monotonic())
      if (outcome.kind === 'ended') this.#onRefreshFailed(key, 'ended', undefined)
      if (outcome.kind === 'failed') this.#onRefreshFailed(key, 'unavailable', outcome.reason)
      return outcome
    })
  }
}

const MISSING: UpstreamTokenResult = { kind: 'missing' }
const ENDED: UpstreamTokenResult = { kind: 'ended' }
const UNAVAILABLE: UpstreamTokenResult = {
  kind: 'unavailable',
  retryAfterMs: createBackoff({ baseMs: 1_000, maxMs: 1_000, jitter: 0 }).next(),
}
