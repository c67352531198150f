/** Revisions with the `initialize` handshake, oldest first. They are one code path; the negotiated one is data. */
export const LEGACY_VERSIONS = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'] as const

export type LegacyVersion = (typeof LEGACY_VERSIONS)[number]

export const NEWEST_LEGACY_VERSION: LegacyVersion = '2025-11-25'

/** The assumed version of a legacy HTTP request without version header and without session. */
export const ASSUMED_LEGACY_VERSION: LegacyVersion = '2025-03-26'

/** The revision without handshake and session, where each request describes itself. */
export const MODERN_VERSION = '2026-07-28'

/** The versions in `server/discover` and error -32022, unless an endpoint serves less. */
export const SERVED_VERSIONS: readonly string[] = [...LEGACY_VERSIONS, MODERN_VERSION]

/** Type of `era` wherever one is decided. */
export type Era = 'legacy' | 'modern'

export function isLegacyVersion(version: unknown): version is LegacyVersion {
  return typeof version === 'string' && (LEGACY_VERSIONS as readonly string[]).includes(version)
}

/** True for the modern revision and for dates after it, which this build does not know yet but must not take for legacy. */
export function isModernOrNewer(version: unknown): version is string {
  return typeof version === 'string' && /^\d{4}-\d\d-\d\d$/.test(version) && version >= MODERN_VERSION
}

/**
 * The version to answer an `initialize` with: the requested one if it is legacy, else the newest legacy one. Never
 * the modern one, even if asked for: that revision has no handshake.
 */
export function negotiateVersion(requested: unknown): LegacyVersion {
  return isLegacyVersion(requested) ? requested : NEWEST_LEGACY_VERSION
}
