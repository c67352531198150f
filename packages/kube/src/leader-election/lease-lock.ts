import type { Clock } from '@thv/kernel/clock'
import type { KubeClient } from '../client/client.ts'
import { isAlreadyExists, isConflict, isNotFound, KubeApiError } from '../client/kube-api-error.ts'
import type { Lease } from '../objects/builtin-kinds.ts'
import { microTime } from '../objects/micro-time.ts'
import { leases } from '../objects/resource-types.ts'
import type { ObjectKey } from '../objects/types.ts'

export interface LeaseLockOptions {
  readonly client: Pick<KubeClient, 'tryGet' | 'create' | 'update'>
  readonly key: ObjectKey
  readonly identity: string
  readonly leaseDurationMs: number
  readonly clock: Clock
  readonly random: () => number
}

export interface LeaseCall {
  readonly signal?: AbortSignal
  readonly timeoutMs: number
}

export type LeaseAttempt =
  /** It was ours at some time after `sentAt` (monotonic), and no other's in between. */
  | { readonly kind: 'held'; readonly sentAt: number }
  | { readonly kind: 'taken'; readonly holder: string }
  /** Somebody wrote at the same time; who has it is not known. */
  | { readonly kind: 'raced' }

export interface LeaseLock {
  /** Takes the lease when it is free or has run out, renews it when it is ours. Throws what the client throws: then nothing is known. */
  hold(call: LeaseCall): Promise<LeaseAttempt>
  /** Gives up what is ours, so that the next one need not wait. Returns whether it was. */
  release(call: LeaseCall): Promise<boolean>
  /** As last seen; empty when free. */
  readonly holder: string
  /** Whether there can be anything to release. */
  readonly mayBeOurs: boolean
}

const RELEASE_TRIES = 3
const MAX_UNKNOWN = 32

/**
 * The record of a Lease, changed only by compare-and-swap on its resourceVersion. Times in the record are never compared with our own
 * clock: a record has run out when we have not seen it change for its duration, by our monotonic clock. A record counts as ours only if
 * this very lock wrote it, so that a second process of the same identity is somebody else.
 */
export function createLeaseLock(options: LeaseLockOptions): LeaseLock {
  const { client, key, identity, leaseDurationMs, clock, random } = options
  let seen: { lease: Lease; print: string; at: number } | undefined
  /** Records that we wrote, or may have written: an answer that was lost says nothing. */
  const written = new Set<string>()

  function observe(lease: Lease | undefined): void {
    const print = lease && fingerprint(lease)
    if (lease === undefined || print === undefined) seen = undefined
    else seen = { lease, print, at: seen?.print === print ? seen.at : clock.monotonic() }
  }

  const isOurs = () => seen !== undefined && written.has(seen.print)

  function isTaken(): boolean {
    if (seen === undefined || holderOf(seen.lease) === '' || isOurs()) return false
    const seconds = seen.lease.spec?.leaseDurationSeconds
    const durationMs = typeof seconds === 'number' && seconds > 0 ? seconds * 1_000 : leaseDurationMs
    return clock.monotonic() - seen.at < durationMs
  }

  /** Undefined when somebody was faster. */
  async function write(spec: NonNullable<Lease['spec']>, { signal, timeoutMs }: LeaseCall): Promise<number | undefined> {
    const sentAt = clock.monotonic()
    const next: Lease = { metadata: seen?.lease.metadata ?? key, spec: { ...seen?.lease.spec, ...spec } }
    const print = fingerprint(next)
    written.add(print)
    if (written.size > MAX_UNKNOWN) written.delete([...written][0] ?? '') // at worst we wait for a lease that is ours
    try {
      const call = { timeoutMs, ...(signal && { signal }) }
      const stored = seen === undefined ? await client.create(leases, next, call) : await client.update(leases, next, call)
      written.clear()
      written.add(print)
      observe(stored)
      return sentAt
    } catch (error) {
      if (error instanceof KubeApiError) written.delete(print) // refused: certainly not written
      if (isConflict(error) || isAlreadyExists(error) || isNotFound(error)) return undefined
      throw error
    }
  }

  function holding(): NonNullable<Lease['spec']> {
    const now = microTime(clock.now(), Math.floor(random() * 1_000))
    const old = seen?.lease.spec
    const spec = { holderIdentity: identity, leaseDurationSeconds: Math.ceil(leaseDurationMs / 1_000), renewTime: now }
    if (isOurs()) return spec
    return { ...spec, acquireTime: now, leaseTransitions: seen === undefined ? 0 : (old?.leaseTransitions ?? 0) + 1 }
  }

  async function read({ signal, timeoutMs }: LeaseCall): Promise<void> {
    observe(await client.tryGet(leases, key, { timeoutMs, ...(signal && { signal }) }))
  }

  return {
    async hold(call) {
      if (isOurs()) {
        const sentAt = await write(holding(), call)
        if (sentAt !== undefined) return { kind: 'held', sentAt }
      }
      await read(call)
      if (isTaken()) return { kind: 'taken', holder: holderOf(seen?.lease) }
      const sentAt = await write(holding(), call)
      return sentAt === undefined ? { kind: 'raced' } : { kind: 'held', sentAt }
    },

    async release(call) {
      for (let tries = 0; tries < RELEASE_TRIES; tries++) {
        await read(call)
        if (!isOurs() || holderOf(seen?.lease) === '') return false
        const now = microTime(clock.now())
        const sentAt = await write({ holderIdentity: '', leaseDurationSeconds: 1, renewTime: now, acquireTime: now }, call)
        if (sentAt !== undefined) return true
      }
      return false
    },

    get holder() {
      return holderOf(seen?.lease)
    },
    get mayBeOurs() {
      return written.size > 0
    },
  }
}

function holderOf(lease: Lease | undefined): string {
  return lease?.spec?.holderIdentity ?? ''
}

function fingerprint({ spec }: Lease): string {
  return JSON.stringify([spec?.holderIdentity, spec?.acquireTime, spec?.renewTime, spec?.leaseDurationSeconds, spec?.leaseTransitions])
}
