import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { FETCH_LIMITS, FETCH_MEMORY_MB, PARALLEL_FETCHES } from './fetch-job.ts'
import { fetchInWorker } from './fetch-worker.ts'

const ROOT = new URL('../../../../../../', import.meta.url)
const documents = ['fetch', 'fetch-old'].map((name) => ({
  server: { name: `io.example/${name}`, description: 'A server', version: '1.0.0', extra: { kept: true } },
  _meta: {},
}))
const never = new AbortController().signal
let origin: Server
let endpoint: string

beforeAll(async () => {
  origin = createServer((_request, response) => {
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ servers: documents, metadata: {} }))
  })
  await new Promise<void>((resolve) => origin.listen(0, '127.0.0.1', resolve))
  endpoint = `http://127.0.0.1:${(origin.address() as AddressInfo).port}`
})
afterAll(() => {
  origin.closeAllConnections()
  origin.close()
})

describe('fetchInWorker', () => {
  const job = {
    source: { format: 'upstream', api: { endpoint: '' } },
    filter: undefined,
    password: undefined,
    remotes: { denyPrivate: false, allowLoopback: true, blockedAddresses: [] as readonly string[] },
  } as const

  it('fetches in a thread of its own, filters, and keeps every member of an entry', async () => {
    const outcome = await fetchInWorker(
      { ...job, source: { ...job.source, api: { endpoint } }, filter: { names: { exclude: ['*-old'] } } },
      never,
    )
    expect(outcome).toMatchObject({ ok: true, servers: 1, hash: expect.stringMatching(/^[0-9a-f]{64}$/) })
    const text = outcome.ok ? (outcome.texts[0] ?? '') : ''
    expect(JSON.parse(text).data.servers).toMatchObject([{ name: 'io.example/fetch', extra: { kept: true } }])
  })

  it('leaves memory for the operator in its pod, with as many fetches as there can be', () => {
    const values = parse(readFileSync(new URL('deploy/charts/toolhive-operator/values.yaml', ROOT), 'utf8'))
    const podMb = Number(/^(\d+)Mi$/.exec(values.operator.resources.limits.memory)?.[1])
    const fetchMb = FETCH_MEMORY_MB + FETCH_LIMITS.maxBytes / 1024 / 1024
    expect(podMb - PARALLEL_FETCHES * fetchMb).toBeGreaterThanOrEqual(384)
  })

  it('starts no thread for a sync that was stopped while it waited', async () => {
    let asked = 0
    origin.on('request', () => {
      asked += 1
    })
    const outcome = await fetchInWorker({ ...job, source: { ...job.source, api: { endpoint } } }, AbortSignal.abort())
    expect(outcome).toEqual({ ok: false, reason: 'FetchFailed', message: 'the sync was stopped' })
    expect(asked).toBe(0)
  })

  it('gives a failure for what cannot be fetched, or must not be', async () => {
    const api = { ...job, source: { ...job.source, api: { endpoint } } }
    const remote = await fetchInWorker({ ...api, remotes: { ...job.remotes, allowLoopback: false } }, never)
    expect(remote).toMatchObject({ ok: false, reason: 'FetchFailed', message: expect.stringContaining('loopback') })
    const blocked = await fetchInWorker({ ...api, remotes: { ...job.remotes, blockedAddresses: [new URL(endpoint).host] } }, never)
    expect(blocked).toMatchObject({ ok: false, reason: 'FetchFailed', message: expect.stringContaining('Kubernetes API server') })
    const git = { repository: 'ssh://git@git.example.com/r.git', branch: 'main', path: 'registry.json' }
    const invalid = await fetchInWorker({ ...job, source: { format: 'toolhive', git } }, never)
    expect(invalid).toMatchObject({ ok: false, reason: 'ValidationFailed', message: expect.stringContaining('spec.source.git.repository') })
  })
})
