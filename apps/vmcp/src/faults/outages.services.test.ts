import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { WireClient } from '@thv/gateway/testing/wire-client'
import { systemClock } from '@thv/kernel/clock'
import { type Fixture, startFixture } from '@thv/testkit/mcp/fixture'
import { startRedis, type TestRedis } from '@thv/testkit/redis/redis'
import { redisProblem } from '@thv/testkit/redis/redis-programs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { callModern } from '../testing/call-modern.ts'
import { callOpen, OpenStream } from '../testing/open-stream.ts'
import { startTestVmcp } from '../testing/test-vmcp.ts'

const describeRedis = redisProblem() === undefined || process.env['CI'] ? describe : describe.skip

const ENV = { THV_SESSION_REDIS_PASSWORD: 'pa55', VMCP_SESSION_HMAC_SECRET: 'of all replicas, and long enough' }
const ASKS = {
  name: 'asks',
  description: 'Adds, asks, then repeats the answer.',
  steps: [
    { id: 'add', tool: 'one.add_numbers', arguments: { a: 1, b: 2 } },
    {
      ...{ id: 'ask', type: 'elicitation', message: 'What?', dependsOn: ['add'] },
      schema: { type: 'object', properties: { text: { type: 'string' } } },
    },
    { id: 'say', tool: 'one.echo', dependsOn: ['ask'], arguments: { text: '{{.steps.ask.output.content.text}}' } },
  ],
}
const SLOW = { name: 'slow', description: 'Hangs.', steps: [{ id: 'only', tool: 'one.hang' }] }
const PATIENT = { timeout: 30_000 }

describeRedis('a virtual server that loses what it stands on', () => {
  let redis: TestRedis
  let fixture: Fixture
  const folder = mkdtempSync(join(tmpdir(), 'vmcp-outage-'))

  beforeAll(async () => {
    redis = await startRedis({ password: 'pa55' })
    fixture = await startFixture({ era: 'legacy' })
  })
  afterAll(async () => {
    for (const each of [redis, fixture]) await each?.[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true })
  })

  const config = () => ({
    sessionStorage: { provider: 'redis', address: `${redis.host}:${redis.port}` },
    compositeTools: [ASKS, SLOW],
  })
  const startHere = (clock = systemClock) => startTestVmcp({ backends: { one: fixture.url }, env: ENV, config: config(), clock })

  async function opened(url: string): Promise<WireClient> {
    const client = new WireClient(url)
    await expect.poll(async () => (await client.initialize()).status, PATIENT).toBe(200)
    return client
  }

  /** Calls that reached the backend, by the name of the tool. */
  const ran = (name: string) => fixture.stats.received.filter(({ message }) => JSON.stringify(message).includes(`"name":"${name}"`)).length

  /** A process of its own, which can be killed. */
  async function startProcess() {
    const file = join(folder, 'vmcp.json')
    const whole = {
      ...{ name: 'joined', groupRef: 'group', incomingAuth: { type: 'anonymous' }, outgoingAuth: { source: 'inline' } },
      ...{ aggregation: { conflictResolution: 'prefixOnConflict' }, backends: [{ name: 'one', url: fixture.url }], ...config() },
    }
    writeFileSync(file, JSON.stringify(whole))
    const main = new URL('../main.ts', import.meta.url).pathname
    const args = [main, 'serve', '--config', file, '--host', '127.0.0.1', '--port', '0']
    const child = spawn(process.execPath, args, { env: { ...process.env, ...ENV }, stdio: ['ignore', 'pipe', 'pipe'] })
    const url = Promise.withResolvers<string>()
    const lines: string[] = []
    for (const input of [child.stdout, child.stderr])
      createInterface({ input }).on('line', (line) => {
        lines.push(line)
        const found = /http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(line)
        if (line.includes('listening') && found !== null) url.resolve(found[0])
      })
    const ended = once(child, 'exit')
    void ended.then(() => url.reject(new Error(`vmcp ended: ${lines.join('\n')}`)))
    return {
      url: await url.promise,
      async kill() {
        child.kill('SIGKILL')
        await ended
      },
      async [Symbol.asyncDispose]() {
        child.kill('SIGKILL')
        await ended
      },
    }
  }

  it('killed in a call and in a workflow breaks the connection and repeats nothing; another replica goes on with its sessions and tells of it', async () => {
    await using killed = await startProcess()
    // Leases of the other have run out for it.
    await using other = await startHere({ ...systemClock, now: () => systemClock.now() + 60_000 })
    const client = await opened(killed.url)
    const before = ran('hang')
    const call = client.call('hang').then(
      ({ status }) => `answered ${status}`,
      () => 'broken',
    )
    const workflow = await callOpen(client, 'slow')
    const eventId = await workflow.eventId()
    await expect.poll(() => ran('hang'), PATIENT).toBe(before + 2)
    await expect.poll(() => redis.command('KEYS', '*running:*'), PATIENT).toContain(client.sessionId)
    await killed.kill()
    expect(await call).toBe('broken')
    await expect(workflow.ended).rejects.toThrow()
    const elsewhere = new WireClient(other.url)
    elsewhere.sessionId = client.sessionId
    await expect.poll(async () => (await elsewhere.call('echo', { text: 'still here' })).text, PATIENT).toContain('still here')
    const comeBack = async () => {
      const response = await elsewhere.get({ 'last-event-id': eventId }, AbortSignal.timeout(PATIENT.timeout))
      const stream = new OpenStream(response)
      await stream.ended
      return stream.messages
    }
    // A Redis that is slow to answer holds up no step: then the count is the one before it.
    const error = { code: 5035, data: { mayHaveRun: expect.toBeOneOf([0, 1]) } }
    await expect.poll(comeBack, PATIENT).toMatchObject([{ id: 'call-1', error }])
    expect(ran('hang')).toBe(before + 2)
  })

  it('killed while it waits for a person: a workflow goes on elsewhere without its first steps, a parked call says where it was', async () => {
    await using killed = await startProcess()
    await using other = await startHere()
    await opened(killed.url)
    await opened(other.url)
    const asked = async (name: string, more: object = {}) => {
      let state: string | undefined
      await expect
        .poll(async () => (state = (await callModern(killed.url, name, { ...more })).result?.requestState), PATIENT)
        .toBeTypeOf('string')
      return state
    }
    const before = ran('add_numbers')
    const workflow = await asked('asks')
    const added = ran('add_numbers')
    expect(added).toBeGreaterThan(before)
    const parked = await asked('test_elicitation', { arguments: { message: 'Who?' } })
    await killed.kill()
    const inputResponses = { 'elicitation-1': { action: 'accept', content: { text: 'elsewhere' } } }
    const goOn = async () => JSON.stringify(await callModern(other.url, 'asks', { requestState: workflow, inputResponses }))
    await expect.poll(goOn, PATIENT).toContain('elsewhere')
    expect(ran('add_numbers')).toBe(added)
    const lost = await callModern(other.url, 'test_elicitation', { arguments: { message: 'Who?' }, requestState: parked, inputResponses })
    expect(lost).toMatchObject({ error: { code: -32602, data: { reason: 'wrong replica' } } })
  })

  it('without Redis serves the sessions that it knows and modern clients, and refuses others until it is back', async () => {
    await using vmcp = await startHere()
    const client = await opened(vmcp.url)
    expect((await client.call('echo', { text: 'before' })).status).toBe(200)
    await redis.kill()
    await expect.poll(async () => (await new WireClient(vmcp.url).initialize()).status, PATIENT).toBe(503)
    expect((await client.call('echo', { text: 'known' })).text).toContain('known')
    expect((await callModern(vmcp.url, 'echo', { arguments: { text: 'modern' } })).result).toBeDefined()
    expect((await fetch(`${vmcp.base}/health`)).status).toBe(200)
    await redis.start()
    const again = await opened(vmcp.url)
    expect((await again.call('echo', { text: 'back' })).text).toContain('back')
  })
})
