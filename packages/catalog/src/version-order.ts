import { compareCodePoints } from './text.ts'

/** A version read leniently: `v` prefix, missing minor and patch, leading zeros. Numbers stay text: they may have any length. */
interface Semver {
  readonly core: readonly [string, string, string]
  readonly prerelease: readonly string[]
}

/**
 * The one order of versions, for lists and for `latest`: what is no semver first, by code point, so that a branch name or a hash
 * is never above a release; then semver by precedence. It is total: 0 only for the same text (`1.0.0+a` and `v1.0.0+b` have
 * the same precedence and are ordered by code point).
 */
export function compareVersions(a: string, b: string): number {
  if (a === b) return 0
  const x = parse(a)
  const y = parse(b)
  if (x === undefined || y === undefined) {
    if (x !== undefined) return 1
    if (y !== undefined) return -1
    return compareCodePoints(a, b)
  }
  return comparePrecedence(x, y) || compareCodePoints(a, b)
}

/**
 * Whether `a` replaces `b` as the newer of two: semver precedence if both are semver, else text. Strict: versions that differ only in build
 * metadata are equal. Not transitive across the two kinds (1.10.0 > 1.9.0 > "1.5x" > 1.10.0): to sort, use compareVersions.
 */
export function isNewer(a: string, b: string): boolean {
  const x = parse(a)
  const y = parse(b)
  return (x !== undefined && y !== undefined ? comparePrecedence(x, y) : compareCodePoints(a, b)) > 0
}

const MAX_LENGTH = 255
const SEMVER = /^v?(\d+)(?:\.(\d+))?(?:\.(\d+))?(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?$/

function parse(version: string): Semver | undefined {
  if (version.length > MAX_LENGTH) return undefined
  const parts = SEMVER.exec(version)
  if (parts === null) return undefined
  const [, major = '0', minor = '0', patch = '0', prerelease] = parts
  return { core: [major, minor, patch], prerelease: prerelease === undefined ? [] : prerelease.split('.') }
}

/** SemVer 2.0.0 §11. */
function comparePrecedence(a: Semver, b: Semver): number {
  for (const i of [0, 1, 2] as const) {
    const order = compareNumbers(a.core[i], b.core[i])
    if (order !== 0) return order
  }
  if (a.prerelease.length === 0 || b.prerelease.length === 0) return b.prerelease.length - a.prerelease.length
  for (const [i, identifier] of a.prerelease.entries()) {
    const other = b.prerelease[i]
    if (other === undefined) return 1
    const order = compareIdentifiers(identifier, other)
    if (order !== 0) return order
  }
  return a.prerelease.length - b.prerelease.length
}

function compareIdentifiers(a: string, b: string): number {
  const aIsNumber = /^\d+$/.test(a)
  const bIsNumber = /^\d+$/.test(b)
  if (aIsNumber && bIsNumber) return compareNumbers(a, b)
  if (aIsNumber !== bIsNumber) return aIsNumber ? -1 : 1
  return compareCodePoints(a, b)
}

function compareNumbers(a: string, b: string): number {
  const x = a.replace(/^0+(?=\d)/, '')
  const y = b.replace(/^0+(?=\d)/, '')
  return x.length - y.length || compareCodePoints(x, y)
}
