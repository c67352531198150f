import type { FetchedEntry, FetchResult } from '@thv/catalog/sources/fetch/registry-handler'
import { expect, it } from 'vitest'
import { fetchedEntry, fileSource, fullResult } from '../engine/testing/engine-fixture.ts'
import type { Fingerprint } from '../store/registry-store.ts'
import { entryChanges } from './entry-changes.ts'

const versions = (count: number, from = 0): FetchedEntry[] =>
  Array.from({ length: count }, (_, i) => fetchedEntry('x/many', `1.0.${from + i}`))

async function changesOf(entries: readonly FetchedEntry[], known: readonly FetchedEntry[] = [], kind: 'full' | 'delta' = 'full') {
  async function* fingerprints(): AsyncGenerator<readonly Fingerprint[]> {
    yield known.map(({ name, version, status = 'active' }) => ({ name, version, status, hash: 'old' }))
  }
  const fetched = { ...fullResult(entries), kind } as Extract<FetchResult, { kind: 'full' | 'delta' }>
  return entryChanges({ source: fileSource('a'), fetched, fingerprints: fingerprints(), pause: async () => {} })
}

it('takes so many versions of one server that its list of versions can be served, and says so', async () => {
  const { upserts, problems } = await changesOf([...versions(10_003), fetchedEntry('x/other', '1.0.0')])
  expect(upserts).toHaveLength(10_001)
  expect(upserts.at(-1)?.name).toBe('x/other')
  expect(problems).toEqual([
    { entry: 'x/many', pointer: '', message: 'has 3 versions more than the 10000 that are taken', severity: 'dropped' },
  ])
})

it('takes what a delta says is gone, and leaves the rest', async () => {
  async function* fingerprints(): AsyncGenerator<readonly Fingerprint[]> {
    yield ['a', 'b', 'c'].map((name) => ({ name: `x/${name}`, version: '1', hash: 'old', status: name === 'c' ? 'deleted' : 'active' }))
  }
  const gone = ['a', 'c', 'd'].map((name) => ({ name: `x/${name}`, version: '1' }))
  const fetched = { ...fullResult([fetchedEntry('x/e', '1')]), kind: 'delta', gone } as Extract<FetchResult, { kind: 'delta' }>
  const changes = await entryChanges({ source: fileSource('a'), fetched, fingerprints: fingerprints(), pause: async () => {} })
  expect(changes.gone).toEqual([{ name: 'x/a', version: '1' }])
  expect(changes.upserts.map(({ name }) => name)).toEqual(['x/e'])
})

it('counts the versions that are there already, and stay', async () => {
  const delta = await changesOf(versions(5, 9_998), versions(9_998), 'delta')
  expect(delta.upserts.map(({ version }) => version)).toEqual(['1.0.9998', '1.0.9999'])
  expect(delta.problems).toMatchObject([{ message: 'has 3 versions more than the 10000 that are taken' }])
  const full = await changesOf(versions(5, 9_998), versions(9_998))
  expect(full.upserts).toHaveLength(5)
  expect(full.gone).toHaveLength(9_998)
})
