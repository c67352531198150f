import { describe, expect, it } from 'vitest'
import {
  ASSUMED_LEGACY_VERSION,
  isLegacyVersion,
  isModernOrNewer,
  LEGACY_VERSIONS,
  MODERN_VERSION,
  NEWEST_LEGACY_VERSION,
  negotiateVersion,
  SERVED_VERSIONS,
} from './versions.ts'

describe('versions', () => {
  it('pins the revisions, oldest first', () => {
    expect(LEGACY_VERSIONS).toEqual(['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'])
    expect(MODERN_VERSION).toBe('2026-07-28')
    expect(SERVED_VERSIONS).toEqual(['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28'])
    expect([...SERVED_VERSIONS].sort()).toEqual(SERVED_VERSIONS)
    expect(NEWEST_LEGACY_VERSION).toBe('2025-11-25')
    expect(ASSUMED_LEGACY_VERSION).toBe('2025-03-26')
  })

  it.each([
    ['2024-11-05', true, false],
    ['2025-11-25', true, false],
    ['2026-07-28', false, true],
    ['2026-07-29', false, true],
    ['2031-01-01', false, true],
    ['2026-07-27', false, false],
    ['2024-10-07', false, false],
    ['2026-07-28 ', false, false],
    ['DRAFT-2026-v1', false, false],
    ['v999.0.0', false, false],
    ['', false, false],
    [undefined, false, false],
    [['2026-07-28'], false, false],
  ])('%j is legacy: %s, modern or newer: %s', (version, legacy, modern) => {
    expect(isLegacyVersion(version)).toBe(legacy)
    expect(isModernOrNewer(version)).toBe(modern)
  })

  it.each([
    ['2024-11-05', '2024-11-05'],
    ['2025-03-26', '2025-03-26'],
    ['2025-06-18', '2025-06-18'],
    ['2025-11-25', '2025-11-25'],
    ['2026-07-28', '2025-11-25'],
    ['2027-01-01', '2025-11-25'],
    ['1.0', '2025-11-25'],
    [undefined, '2025-11-25'],
    [20251125, '2025-11-25'],
  ])('an initialize that asks for %j gets %s', (requested, answered) => {
    expect(negotiateVersion(requested)).toBe(answered)
  })
})
