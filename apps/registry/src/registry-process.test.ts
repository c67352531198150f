import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ProcessStarter, processStarter } from './testing/registry-process.ts'
import { until } from './testing/until.ts'

let folder: string
let processes: ProcessStarter

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'registry-process-'))
  processes = processStarter(folder)
})

afterAll(() => {
  processes[Symbol.dispose]()
  rmSync(folder, { recursive: true })
})

const CONFIG = (name: string) =>
  `sources: [{name: own, managed: {}}]\nregistries: [{name: ${name}, sources: [own]}]\nauth: {mode: anonymous}\n`

describe('the program', () => {
  it('serves without a cluster, keeps what is published over a restart, reads its file again, and stops in good order', async () => {
    const config = join(folder, 'config.yaml')
    writeFileSync(config, CONFIG('first'))
    const args = ['--config', config, '--data-dir', join(folder, 'data')]
    const one = await processes.serve(args)
    await until(async () => (await fetch(`${one.internalUrl}/readiness`)).ok)
    const document = {
      $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
      name: 'com.example/kept',
      description: 'A server that is kept',
      version: '1.0.0',
      remotes: [{ type: 'streamable-http', url: 'https://mcp.example.com/mcp' }],
    }
    const published = await fetch(`${one.url}/registry/first/v0.1/publish`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(document),
    })
    expect([published.status, await published.json()]).toMatchObject([200, { server: document }])

    writeFileSync(config, CONFIG('second'))
    one.child.kill('SIGHUP')
    await until(async () => (await fetch(`${one.url}/registry/second/v0.1/servers`)).ok)
    one.child.kill('SIGTERM')
    expect(await one.ended).toMatchObject({ code: 0, out: '' })

    const two = await processes.serve(args)
    const kept = await until(async () => {
      const answer = await fetch(`${two.url}/registry/second/v0.1/servers/com.example%2Fkept/versions/latest`)
      return answer.ok && answer.json()
    })
    expect(kept).toMatchObject({ server: document })
    two.child.kill('SIGINT')
    expect((await two.ended).code).toBe(0)
  })

  it('serves what a sync fetched again after a restart, also when the source is gone [001-063]', async () => {
    const [config, data] = [join(folder, 'files.yaml'), join(folder, 'servers.json')]
    const server = { name: 'com.example/fetched', description: 'A server from a file', version: '1.0.0' }
    const $schema = 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json'
    writeFileSync(data, JSON.stringify([{ $schema, ...server }]))
    const source = `{name: files, file: {path: ${JSON.stringify(data)}}, syncPolicy: {interval: 1m}}`
    writeFileSync(config, `sources: [${source}]\nregistries: [{name: main, sources: [files]}]\nauth: {mode: anonymous}\n`)
    const args = ['--config', config, '--data-dir', join(folder, 'file-data')]
    const listed = (url: string) =>
      until(async () => {
        const answer = await fetch(`${url}/registry/main/v0.1/servers`)
        const { servers } = (answer.ok ? await answer.json() : { servers: [] }) as { servers: { server: { name: string } }[] }
        return servers.length > 0 && servers.map((each) => each.server.name)
      })
    const one = await processes.serve(args)
    expect(await listed(one.url)).toEqual(['com.example/fetched'])
    one.child.kill('SIGTERM')
    expect((await one.ended).code).toBe(0)
    rmSync(data)
    const two = await processes.serve(args)
    expect(await listed(two.url)).toEqual(['com.example/fetched'])
    two.child.kill('SIGTERM')
    expect((await two.ended).code).toBe(0)
  })

  it('says what is wrong with its configuration, line by line, and ends with 1', async () => {
    const config = join(folder, 'bad.yaml')
    writeFileSync(config, `${CONFIG('a')}synch: {}\nkitchen: \${PASSWORD}\n`)
    const { code, err } = await processes.start(['serve', '--config', config], { PASSWORD: 'hunter2' }).ended
    expect(code).toBe(1)
    expect(err.split('\n')).toEqual([
      `thv-registry-api: ${config}:4:1: synch: is not known; did you mean "sync"?`,
      expect.stringContaining(`thv-registry-api: ${config}:5:1: kitchen: is not known; known are`),
      '',
    ])
    expect(err).not.toContain('hunter2')
    const validated = await processes.start(['validate', '--config', config], { PASSWORD: 'hunter2' }).ended
    expect([validated.code, validated.out.split('\n').length, validated.err]).toEqual([1, 3, ''])
  })

  it('ends with 2 when it is called wrongly, and with 1 when its port is taken', async () => {
    expect(await processes.start(['serve', '--nonsense']).ended).toMatchObject({
      code: 2,
      err: 'thv-registry-api: unknown option \'--nonsense\'; "thv-registry-api --help" lists what there is\n',
    })
    expect(await processes.start([]).ended).toMatchObject({ code: 0, out: expect.stringContaining('validate') })
    const memory = join(folder, 'memory.yaml')
    writeFileSync(memory, `${CONFIG('a')}storage: {memory: true}\n`)
    const first = await processes.serve(['--config', memory])
    const second = await processes.start(['serve', '--config', memory, '--address', new URL(first.url).host]).ended
    expect(second).toMatchObject({ code: 1, err: expect.stringMatching(/cannot listen on .*: it is in use; --address/) })
  })
})
