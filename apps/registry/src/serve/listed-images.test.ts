import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isListed } from '@thv/catalog/images/image-hashes'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startRegistry } from '../testing/run-registry.ts'
import { until } from '../testing/until.ts'

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'registry-images-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

function write(servers: Record<string, unknown>): void {
  writeFileSync(join(folder, 'registry.json'), JSON.stringify({ version: '1.0.0', servers }))
}

async function images(url: string | undefined, headers: Record<string, string> = {}) {
  const answer = await fetch(`${url}/status/images`, { headers })
  const text = await answer.text()
  const json = (text === '' ? {} : JSON.parse(text)) as { synced?: boolean; images?: string[] }
  return { status: answer.status, etag: answer.headers.get('etag') ?? '', text, json }
}

describe('/status/images', () => {
  it('lists the images of all sources as hashes, follows changes, and answers 304 to a known tag', async () => {
    write({ fetch: { image: 'example.com/fetch:1' }, web: { image: 'nginx' } })
    const configFile = join(folder, 'config.yaml')
    writeFileSync(
      configFile,
      `sources:
  - {name: files, file: {path: ${folder}/registry.json}}
  - {name: spare, file: {path: ${folder}/missing.json}}
registries: [{name: all, sources: [files, spare]}]
auth: {mode: anonymous}
`,
    )
    await using registry = await startRegistry(['--config', configFile])
    const url = registry.internalUrl
    const first = await until(async () => {
      const answer = await images(url)
      return answer.json.synced && answer
    })
    const hashes = new Set(first.json.images)
    expect(hashes.size).toBe(2)
    expect(isListed('example.com/fetch:1', hashes)).toBe(true)
    expect(isListed('docker.io/library/nginx:latest', hashes)).toBe(true)
    expect(isListed('example.com/fetch:2', hashes)).toBe(false)
    expect(first.text).not.toMatch(/fetch|nginx|example/)
    expect(await images(url, { 'if-none-match': first.etag })).toMatchObject({ status: 304, text: '' })
    write({ fetch: { image: 'example.com/fetch:2' } })
    await until(async () => isListed('example.com/fetch:2', new Set((await images(url)).json.images)))
    expect((await images(url, { 'if-none-match': first.etag })).status).toBe(200)
    expect((await fetch(`${url}/status/images`, { method: 'POST' })).status).toBe(405)
    expect((await fetch(`${registry.url}/status/images`)).status).toBe(404)
  })
})
