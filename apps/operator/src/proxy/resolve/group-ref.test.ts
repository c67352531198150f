import { describe, expect, it } from 'vitest'
import { resolveGroupRef } from './group-ref.ts'
import { contributionOf, snapshot } from './testing/snapshot.ts'

const resolve = (groups: Parameters<typeof snapshot>[0] extends infer O ? NonNullable<O> : never) =>
  contributionOf(resolveGroupRef({ groupRef: { name: 'g' }, lookup: snapshot(groups) }))

describe('resolveGroupRef', () => {
  it('adds nothing without a group', () => {
    expect(contributionOf(resolveGroupRef({ groupRef: undefined, lookup: snapshot() }))).toEqual({})
  })

  it.each([
    ['a group that is ready', { g: { status: { phase: 'Ready' as const } } }, 'True', 'GroupRefIsValid'],
    ['no group', {}, 'False', 'GroupRefNotFound'],
    ['a group without status', { g: {} }, 'False', 'GroupRefNotReady'],
    ['a group that failed', { g: { status: { phase: 'Failed' as const } } }, 'False', 'GroupRefNotReady'],
  ])('never blocks, and says what it found: %s', (_, groups, status, reason) => {
    const contribution = resolve({ groups })
    expect(contribution.conditions).toMatchObject([{ type: 'GroupRefValidated', status, reason }])
    expect(contribution.status).toEqual({ group: 'g' })
    expect(contribution).not.toHaveProperty('runConfig')
  })
})
