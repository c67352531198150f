import { describe, expect, test } from 'vitest'
import { reasonToSkip } from './global-setup.ts'
import type { Availability } from './programs/binaries.ts'

describe('cluster tests', () => {
  const unavailable: Availability = { kind: 'unavailable', reason: 'no Go' }
  test.each<[string, NodeJS.ProcessEnv, Availability, string | undefined]>([
    ['skipped where nothing can run', {}, unavailable, 'no Go'],
    ['never skipped in CI', { CI: 'true' }, unavailable, undefined],
    ['CI=false is no CI', { CI: 'false' }, unavailable, 'no Go'],
    ['never skipped when a folder is named', { KUBEBUILDER_ASSETS: '/x' }, unavailable, undefined],
    ['run when binaries are there', {}, { kind: 'ready', reason: '' }, undefined],
    ['run when they can be built', {}, { kind: 'buildable', reason: '' }, undefined],
  ])('%s', (_, env, availability, reason) => expect(reasonToSkip(env, () => availability)).toBe(reason))
})
