import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startLocalRegistry } from './local-registry.ts'
import { notedRegistry } from './registry-note.ts'
import { registryState } from './registry-state.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'thv-registry-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

/** Listens on the given address, as a registry would; `/end` ends it. */
const PROGRAM = `
const { createServer } = require('node:http')
const [host, port] = process.argv[process.argv.indexOf('--address') + 1].split(':')
createServer((request, response) => {
  if (request.url === '/end') process.exit(3)
  response.end(JSON.stringify(process.argv.slice(1)))
}).listen(Number(port), host)
`
const program = (script: string) => [process.execPath, '-e', script, 'thv-registry-api']
const log = { debug: () => {}, info: () => {}, warn: () => {} }
const start = (script = PROGRAM) => startLocalRegistry({ folder, program: program(script), variables: process.env, log })
const isReady = async () => (await registryState(folder))?.state

describe('the registry beside the platform', () => {
  it('is started with an address and a folder of its own, and is on the same port the next time', async () => {
    const first = await start()
    await expect.poll(isReady, { timeout: 10_000 }).toBe('ready')
    const args = (await (await fetch(first.url)).json()) as string[]
    expect(args).toContain(join(folder, 'registry'))
    expect(args).not.toContain('--config')
    await first.stop()
    await expect(fetch(first.url)).rejects.toThrow()
    const second = await start()
    expect(second.url).toBe(first.url)
    await second.stop()
  })

  it('comes back when it ends', async () => {
    const registry = await start()
    await expect.poll(isReady, { timeout: 10_000 }).toBe('ready')
    await fetch(`${registry.url}/end`).catch(() => undefined)
    await expect.poll(() => notedRegistry(folder)?.problem, { timeout: 10_000 }).toContain('code 3')
    await expect.poll(isReady, { timeout: 10_000 }).toBe('ready')
    await registry.stop()
  })

  it('that cannot run passes on what it complains about', async () => {
    const registry = await start("console.error('thv-registry-api: registry.db is in use by another process'); process.exit(1)")
    await expect
      .poll(() => registryState(folder), { timeout: 10_000 })
      .toMatchObject({ state: 'failing', detail: 'registry.db is in use by another process' })
    await registry.stop()
  })

  it('keeps its data beside the platform also with a configuration of its own', async () => {
    const configFile = join(folder, 'registry.yaml')
    const registry = await startLocalRegistry({ folder, program: program(PROGRAM), configFile, variables: process.env, log })
    await expect.poll(isReady, { timeout: 10_000 }).toBe('ready')
    const args = (await (await fetch(registry.url)).json()) as string[]
    expect(args).toEqual(expect.arrayContaining(['--config', configFile, '--data-dir', join(folder, 'registry')]))
    await registry.stop()
  })

  it('that cannot run says why, and is stopped at once', async () => {
    const registry = await start('process.exit(1)')
    await expect
      .poll(() => registryState(folder), { timeout: 10_000 })
      .toMatchObject({ state: 'failing', detail: expect.stringContaining('code 1') })
    await registry.stop()
  })
})
