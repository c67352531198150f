import { createBackoff } from '@thv/kernel/backoff'
import type { Clock } from '@thv/kernel/clock'
import { isThvError } from '@thv/kernel/errors'
import type { AuthStore } from '@thv/store/auth/auth-store'
import type { RecordCipher } from '@thv/store/redis/record-cipher'
import type { UpstreamKey } from '../upstream-tokens.ts'
import { openRow, rowId, rowTtlMs, sealRow, type UpstreamRow } from './upstream-row.ts'

export interface VaultRowsOptions {
  readonly store: AuthStore
  /** Asked for at each use, as secrets are replaced. */
  readonly cipher: () => RecordCipher
  readonly clock: Clock
  readonly signal: AbortSignal
}

/** The rows of the vault in the store. Methods reject with `store_unavailable`. */
export interface VaultRows {
  read(key: UpstreamKey): Promise<UpstreamRow | undefined>
  /** Does not give up at once: the provider may have taken the refresh token that the store still has. */
  write(key: UpstreamKey, row: UpstreamRow): Promise<void>
  remove(key: UpstreamKey): Promise<void>
  lock(id: string, ttlMs: number): Promise<AsyncDisposable | undefined>
}

const KIND = 'upstream'
/** Together with the store's own patience, less than the lock lives. */
const WRITE_ATTEMPTS = 4

export function createVaultRows({ store, cipher, clock, signal }: VaultRowsOptions): VaultRows {
  return {
    async read(key) {
      const id = rowId(key)
      const record = await store.get(KIND, id)
      return record === undefined ? undefined : openRow(record.value, id, cipher())
    },
    async write(key, row) {
      const id = rowId(key)
      const backoff = createBackoff({ baseMs: 50, maxMs: 500 })
      for (;;) {
        try {
          const ttlMs = rowTtlMs(row, clock.now())
          await store.put(KIND, id, { value: sealRow(row, id, cipher()), ttlMs })
          return
        } catch (error) {
          if (!isThvError(error, 'store_unavailable') || backoff.failures + 1 >= WRITE_ATTEMPTS) throw error
          await clock.sleep(backoff.next(), signal)
        }
      }
    },
    async remove(key) {
      await store.remove(KIND, rowId(key))
    },
    lock: (id, ttlMs) => store.lock(`${KIND}:${id}`, ttlMs),
  }
}
