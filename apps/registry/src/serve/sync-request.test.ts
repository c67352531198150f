import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SourcesReport } from '@thv/catalog/status/sources-report'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startRegistry } from '../testing/run-registry.ts'
import { until } from '../testing/until.ts'

let folder: string
let origin: Server
let requests = 0
let healthy = true

const document = { version: '1.0.0', servers: { fetch: { image: 'example.com/fetch:1' } } }

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'registry-request-'))
  requests = 0
  healthy = true
  origin = createServer((_request, response) => {
    requests += 1
    if (healthy) response.end(JSON.stringify(document))
    else response.writeHead(500).end()
  })
  await new Promise<void>((resolve) => origin.listen(0, '127.0.0.1', resolve))
})

afterEach(() => {
  origin.closeAllConnections()
  origin.close()
  rmSync(folder, { recursive: true })
})

const configFile = () => join(folder, 'config.yaml')

function write(syncRequest: string | undefined): void {
  const bound = origin.address()
  const port = typeof bound === 'object' ? bound?.port : 0
  writeFileSync(
    configFile(),
    `${syncRequest === undefined ? '' : `syncRequest: "${syncRequest}"\n`}sources:
  - {name: web, file: {url: "http://127.0.0.1:${port}/r.json"}}
  - {name: zone, managed: {}}
registries: [{name: all, sources: [web, zone]}]
auth: {mode: anonymous}
storage: {path: ${folder}/registry.db}
sync: {allowPrivateAddresses: true, retryInterval: 1h}
`,
  )
}

async function report(url: string | undefined, headers: Record<string, string> = {}) {
  const answer = await fetch(`${url}/status/sources`, { headers })
  const text = await answer.text()
  return { status: answer.status, etag: answer.headers.get('etag') ?? '', json: (text === '' ? {} : JSON.parse(text)) as SourcesReport }
}

describe('syncRequest and /status/sources', () => {
  it('fetches once for each new text, also across restarts, and reports when that is done', async () => {
    write(undefined)
    {
      await using registry = await startRegistry(['--config', configFile()])
      const url = registry.internalUrl
      const first = await until(async () => {
        const { json } = await report(url)
        return json.sources?.[0]?.phase === 'complete' && json
      })
      expect(first).toEqual({
        sources: [
          {
            name: 'web',
            type: 'file',
            phase: 'complete',
            attemptCount: 0,
            lastAttempt: expect.any(String),
            lastSuccess: expect.any(String),
            serverCount: 1,
            problemCount: expect.any(Number),
            hash: expect.stringMatching(/^[0-9a-f]{64}$/),
            message: expect.any(String),
          },
          { name: 'zone', type: 'managed', phase: 'complete', attemptCount: 0, serverCount: 0, problemCount: 0, message: '' },
        ],
      })
      expect(requests).toBe(1)
      write('one')
      await until(async () => (await report(url)).json.syncRequest?.done)
      expect(requests).toBe(2)
      expect((await report(url)).json.syncRequest).toEqual({ value: 'one', done: true })
    }
    // A restart reads each source once, as always; the same text adds nothing to it.
    const before = requests
    await using registry = await startRegistry(['--config', configFile()])
    await until(() => requests > before)
    expect((await report(registry.internalUrl)).json.syncRequest).toEqual({ value: 'one', done: true })
    healthy = false
    write('two')
    const failed = await until(async () => {
      const { json } = await report(registry.internalUrl)
      return json.syncRequest?.value === 'two' && json.syncRequest.done && json
    })
    expect(failed.sources[0]).toMatchObject({ phase: 'failed', attemptCount: 1, serverCount: 1 })
    expect(requests).toBe(before + 2)
  })

  it('answers 304 to a known tag, 405 to writes, and nothing of it on the public address', async () => {
    write(undefined)
    await using registry = await startRegistry(['--config', configFile()])
    await until(async () => (await report(registry.internalUrl)).json.sources?.[0]?.phase === 'complete')
    const { etag } = await report(registry.internalUrl)
    expect(await report(registry.internalUrl, { 'if-none-match': etag })).toMatchObject({ status: 304, json: {} })
    expect((await fetch(`${registry.internalUrl}/status/sources`, { method: 'POST' })).status).toBe(405)
    expect((await fetch(`${registry.url}/status/sources`)).status).toBe(404)
  })
})
