import { ThvError } from '@thv/kernel/errors'
import { linkSignals } from '@thv/kernel/lifecycle'
import type { Lease } from '../store/registry-store.ts'
import type { SyncOptions } from './sync-options.ts'

export interface KeptLease {
  /** Aborts with `lease_lost` when the lease is lost, and with the reason of the signal that was given. */
  readonly signal: AbortSignal
  /** To be called in any case: stops renewing. */
  release(): void
}

/** Renews three times per lease. A store that does not answer is no loss until the lease would be over. */
export function keepLease(lease: Lease, options: Pick<SyncOptions, 'store' | 'clock' | 'config' | 'log'>, signal: AbortSignal): KeptLease {
  const { store, clock, config, log } = options
  const lost = new AbortController()
  const ended = new AbortController()
  void renew()

  async function renew(): Promise<void> {
    let until = clock.monotonic() + config.leaseMs
    while (!ended.signal.aborted) {
      try {
        await clock.sleep(config.leaseMs / 3, ended.signal)
        const sentAt = clock.monotonic()
        const held = await store.renewLease(lease, config.leaseMs)
        if (!held) return lose('it was taken over, or the source changed')
        until = sentAt + config.leaseMs
      } catch (e) {
        if (ended.signal.aborted) return
        log.debug('a lease could not be renewed', { source: lease.source, error: e })
        if (clock.monotonic() >= until) return lose('it could not be renewed in time')
      }
    }
  }

  function lose(why: string): void {
    lost.abort(new ThvError('lease_lost', `the lease on source ${lease.source} is lost: ${why}`))
  }

  return { signal: linkSignals(signal, lost.signal), release: () => ended.abort() }
}
