import type { Clock } from '@thv/kernel/clock'
import { type Era, isLegacyVersion, LEGACY_VERSIONS, MODERN_VERSION } from '@thv/mcp/versions'
import { type Rejection, unsupportedVersion } from '@thv/mcp/wire-errors'

/** A refusal must expire: an upgraded server would otherwise never be asked again. */
const REFUSAL_MS = 600_000
const JITTER = 0.2

/** The known era of the server behind this runner: by its answers, or because the configuration pins it. */
export class EraMemory {
  readonly #clock: Clock
  readonly #pin: Era | undefined
  readonly #spoken = new Set<Era>()
  readonly #refusedUntil = new Map<Era, number>()
  readonly #random: () => number
  /** The newest legacy version that the server agreed to. */
  #legacyVersion: string | undefined

  constructor(clock: Clock, pin: 'auto' | Era, random: () => number = Math.random) {
    this.#clock = clock
    this.#pin = pin === 'auto' ? undefined : pin
    this.#random = random
  }

  /** `isOnly`: there is but one process, so what it spoke before it speaks no more. */
  spoke(era: Era, { version, isOnly = false }: { readonly version?: string | undefined; readonly isOnly?: boolean } = {}): void {
    if (isOnly) this.#spoken.clear()
    this.#spoken.add(era)
    this.#refusedUntil.delete(era)
    if (era === 'legacy' && version !== undefined) this.#legacyVersion = version
  }

  refused(era: Era): void {
    this.#spoken.delete(era)
    this.#refusedUntil.set(era, this.#clock.monotonic() + REFUSAL_MS * (1 - JITTER * this.#random()))
  }

  /** Undefined until something told. */
  get eras(): readonly Era[] | undefined {
    if (this.#pin !== undefined) return [this.#pin]
    const eras = BOTH.filter((era) => this.#spoken.has(era))
    return eras.length > 0 ? eras : undefined
  }

  isRefused(era: Era): boolean {
    if (this.#pin !== undefined) return this.#pin !== era
    return (this.#refusedUntil.get(era) ?? Number.NEGATIVE_INFINITY) > this.#clock.monotonic()
  }

  /** The answer to a request of an era that is not spoken: -32022 with what to speak instead. A client that knows both falls back. */
  rejectionOf(era: Era, requested: string): Rejection {
    return unsupportedVersion(requested, era === 'modern' ? this.#legacyVersions() : [MODERN_VERSION])
  }

  /** Of the versions that a modern server lists, those that are let through; without a list, those of a server known to be legacy only. */
  served(listed: readonly string[] | undefined): readonly string[] | undefined {
    if (listed !== undefined) return this.isRefused('legacy') ? listed.filter((version) => !isLegacyVersion(version)) : listed
    return this.eras?.length === 1 && this.eras[0] === 'legacy' ? this.#legacyVersions() : undefined
  }

  #legacyVersions(): readonly string[] {
    const newest = this.#legacyVersion
    return isLegacyVersion(newest) ? LEGACY_VERSIONS.filter((version) => version <= newest) : LEGACY_VERSIONS
  }
}

const BOTH: readonly Era[] = ['legacy', 'modern']
