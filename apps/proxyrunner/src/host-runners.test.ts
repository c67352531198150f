import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { encodeMessage, type FromHost, readFromHost, type ToHost } from '@thv/programs/shared-process/messages'
import { startFixture } from '@thv/testkit/mcp/fixture'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { WireClient } from '../../../packages/gateway/src/testing/wire-client.ts'
import { ensureBundle } from '../../../scripts/bundle.mjs'

const AUDIT_FILE = '/etc/audit/audit.json'

describe('several runners in one process', () => {
  const messages: FromHost[] = []
  let folder: string
  let fixture: Awaited<ReturnType<typeof startFixture>>
  let host: ReturnType<typeof spawn>
  let noise = ''
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'thv-host-'))
    fixture = await startFixture()
    host = spawn(process.execPath, [await ensureBundle('apps/proxyrunner/src/main.ts'), 'host'], { stdio: 'pipe' })
    createInterface({ input: host.stdout as NonNullable<typeof host.stdout> }).on('line', (line) => {
      const message = readFromHost(line)
      if (message === undefined) noise += line
      else messages.push(message)
    })
    host.stderr?.on('data', (chunk: Buffer) => {
      noise += chunk.toString()
    })
  })
  afterAll(async () => {
    host.kill('SIGKILL')
    await fixture.stop()
    rmSync(folder, { recursive: true })
  })

  /** All at once: the first may not have its effect before the last has arrived. */
  const send = (...all: ToHost[]) => void host.stdin?.write(all.map(encodeMessage).join(''))
  const textOf = (id: number, stream: 'stdout' | 'stderr') =>
    messages.map((message) => ('output' in message && message.output === id && message.stream === stream ? message.text : '')).join('')
  const exitOf = (id: number) => messages.flatMap((message) => ('exit' in message && message.exit === id ? [message.code] : []))[0]
  /** With volumes of its own below THV_ROOT. */
  const start = (id: number, config: object, files: Readonly<Record<string, object>> = {}) => {
    const root = join(folder, `pod-${id}`)
    const remote = { remote_url: fixture.url, remote_policy: { allow_loopback: true }, transport: 'streamable-http' }
    const document = { schema_version: 'v0.1.0', host: '127.0.0.1', port: 0, ...remote, ...config }
    for (const [path, content] of Object.entries({ '/etc/runconfig/runconfig.json': document, ...files })) {
      mkdirSync(dirname(join(root, path)), { recursive: true })
      writeFileSync(join(root, path), JSON.stringify(content))
    }
    send({ start: id, args: ['run'], env: { THV_ROOT: root }, cwd: root })
  }
  const urlOf = async (id: number) => {
    await expect.poll(() => [textOf(id, 'stdout'), textOf(id, 'stderr')].join(''), { timeout: 60_000 }).toContain('is served at')
    return / is served at (\S+)/.exec(textOf(id, 'stdout'))?.[1] ?? ''
  }
  const metricsOf = async (id: number) => {
    const url = /"metrics":"([^"]+)"/.exec(textOf(id, 'stderr'))?.[1] ?? ''
    return await (await fetch(url)).text()
  }

  it('each have their own volumes, policies, audit log, metrics and log', async () => {
    const policies = ['permit(principal, action, resource);']
    const authz = { authz_config: { version: '1.0', type: 'cedarv1', cedar: { policies } } }
    start(1, { name: 'audited', audit_config_path: AUDIT_FILE, ...authz }, { [AUDIT_FILE]: { enabled: true, component: 'first' } })
    start(2, { name: 'plain' })
    for (const id of [1, 2]) expect((await new WireClient(await urlOf(id)).modernCall('echo', { text: 'x' })).status).toBe(200)
    await expect.poll(() => textOf(1, 'stdout')).toMatch(/"component":"first"/)
    expect(textOf(2, 'stdout')).toBe(`plain is served at ${await urlOf(2)}\n`)
    expect([textOf(1, 'stderr').includes('"server":"plain"'), textOf(2, 'stderr').includes('"server":"audited"')]).toEqual([false, false])
    expect(await metricsOf(1)).toContain('server="audited"')
    expect(await metricsOf(1)).toMatch(/^toolhive_memory_releases_total\{result="done"\} \d+$/m)
    expect(await metricsOf(2)).not.toContain('server="audited"')
  })

  it('of which one has a bad configuration, it ends alone with the code for that', async () => {
    start(3, { name: 'missing', audit_config_path: AUDIT_FILE }) // that of another pod is not its own
    await expect.poll(() => exitOf(3), { timeout: 60_000 }).toBe(78)
    expect(textOf(3, 'stderr')).toContain(AUDIT_FILE)
    expect([exitOf(1), exitOf(2)]).toEqual([undefined, undefined])
  })

  it('of which one ends although a call keeps its shutdown from ending, it leaves no listener behind', async () => {
    start(4, { name: 'stuck' })
    const client = new WireClient(await urlOf(4))
    expect((await client.modernCall('echo', { text: 'x' })).status).toBe(200)
    const call = client.modernCall('hang').catch(() => 'cut off')
    await expect.poll(() => metricsOf(4), { timeout: 60_000 }).toMatch(/^toolhive_mcp_requests_in_flight\S* 1$/m)
    const { port } = new URL(await urlOf(4))
    const listens = () =>
      fetch(`http://127.0.0.1:${port}/health`).then(
        () => true,
        () => false,
      )
    send({ signal: 4, name: 'SIGTERM' })
    expect([await listens(), exitOf(4)]).toEqual([true, undefined]) // it waits for the call
    send({ signal: 4, name: 'SIGTERM' })
    await expect.poll(() => exitOf(4), { timeout: 60_000 }).toBe(143)
    expect(await listens()).toBe(false)
    expect(await call).toBe('cut off')
    expect([exitOf(1), exitOf(2)]).toEqual([undefined, undefined])
  })

  it('of which one is cut off as soon as it starts, or while it serves, it ends alone and leaves no listener behind', async () => {
    start(5, { name: 'serving' })
    const url = await urlOf(5)
    start(6, { name: 'starting' })
    send(...[5, 6].flatMap((signal) => ['SIGTERM', 'SIGKILL'].map((name) => ({ signal, name }))))
    await expect.poll(() => [exitOf(5), exitOf(6)], { timeout: 60_000 }).toEqual([137, 137])
    // The second may have listened for a moment.
    for (const left of [url, / is served at (\S+)/.exec(textOf(6, 'stdout'))?.[1]])
      if (left !== undefined) await expect(fetch(left)).rejects.toThrow()
    expect((await new WireClient(await urlOf(2)).modernCall('echo', { text: 'x' })).status).toBe(200)
    expect([exitOf(1), exitOf(2)]).toEqual([undefined, undefined])
  })

  it('of which one is stopped, the other serves on; without input the process ends', async () => {
    send({ signal: 1, name: 'SIGTERM' })
    await expect.poll(() => exitOf(1), { timeout: 60_000 }).toBe(0)
    await expect(fetch(await urlOf(1))).rejects.toThrow()
    expect((await new WireClient(await urlOf(2)).modernCall('echo', { text: 'x' })).status).toBe(200)
    expect(exitOf(2)).toBeUndefined()
    const gone = once(host, 'exit')
    host.stdin?.end()
    expect(await gone).toEqual([0, null])
    expect(noise).toBe('')
  })
})
