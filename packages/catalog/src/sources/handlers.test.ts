import { createOutbound } from '@thv/http/outbound/outbound'
import { afterAll, expect, it } from 'vitest'
import { type SourceConfig, sourceTypes } from './fetch/source-config.ts'
import { sourceHash, stateIdentity } from './fetch/source-hash.ts'
import { createHandlers } from './handlers.ts'
import { testContext } from './testing/fetch-context.ts'

const outbound = createOutbound()
afterAll(() => outbound.close())

const types = sourceTypes.filter((type) => type !== 'kubernetes')
const sources: Record<(typeof types)[number], SourceConfig> = {
  git: { name: 'x', git: { repository: 'https://example.com/x' }, intervalMs: 10 },
  api: { name: 'x', api: { endpoint: 'https://example.com' }, intervalMs: 10 },
  file: { name: 'x', file: { path: '/x.json' }, intervalMs: 10 },
  managed: { name: 'x', managed: {} },
}

it('has a handler for every type of source that needs no cluster, which finds nothing wrong with one that is right', () => {
  const handlers = createHandlers({ outbound })
  for (const type of types) expect(handlers[type].validate(sources[type])).toEqual([])
  expect(handlers.api.validate({ ...sources.api, api: { endpoint: 'ftp://x' } })).toEqual([
    '/api/endpoint: must be an absolute http or https URL',
  ])
})

it('never fetches a managed source', async () => {
  const { managed } = createHandlers({ outbound })
  await expect(managed.fetchRegistry(sources.managed, testContext())).rejects.toMatchObject({ code: 'bad_request' })
  await expect(managed.currentHash(sources.managed, testContext())).rejects.toMatchObject({ code: 'bad_request' })
})

it('hashes pieces one by one, and what is made of them', () => {
  const { file } = sources
  const all = [
    sourceHash(file, ['ab']),
    sourceHash(file, ['a', 'b']),
    sourceHash(file, ['a', 'b', '']),
    sourceHash({ ...file, strict: true }, ['ab']),
    sourceHash({ ...file, format: 'upstream' }, ['ab']),
    sourceHash({ ...file, filter: { tags: { exclude: ['x'] } } }, ['ab']),
  ]
  expect(new Set(all).size).toBe(all.length)
  expect(sourceHash({ ...file, file: { path: '/y' }, name: 'y' }, [Buffer.from('ab')])).toBe(all[0])
  expect(stateIdentity({ ...file, file: { path: '/y' } })).not.toBe(stateIdentity(file))
  expect(stateIdentity({ ...file, name: 'y', intervalMs: 5, claims: { a: 'b' } })).toBe(stateIdentity(file))
})
