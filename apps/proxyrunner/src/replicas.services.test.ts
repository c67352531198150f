import { setTimeout as sleep } from 'node:timers/promises'
import { WireClient } from '@thv/gateway/testing/wire-client'
import { startFixture } from '@thv/testkit/mcp/fixture'
import { startSentinels } from '@thv/testkit/redis/redis'
import { redisProblem } from '@thv/testkit/redis/redis-programs'
import { afterEach, describe, expect, it } from 'vitest'
import { PodFleet } from './testing/pod-fleet.ts'
import { type RunnerProcess, spawnReadyRunner, spawnStdioReplica } from './testing/runner-process.ts'

const describeRedis = redisProblem() === undefined || process.env['CI'] ? describe : describe.skip

const open: AsyncDisposable[] = []
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one[Symbol.asyncDispose]()
})

const REPLICAS = 3
const SESSIONS = 12
const BUCKET = 10
const ENV = { THV_SESSION_REDIS_PASSWORD: 'pa55' }
const LIMITED = 'who_am_i'
const limits = { rate_limit_config: { tools: [{ name: LIMITED, shared: { maxTokens: BUCKET, refillPeriod: '24h' } }] } }

/** Starts the replicas of a runner from what they have in common. */
type Start = (document: object) => Promise<RunnerProcess[]>

async function overHttp(document: object): Promise<RunnerProcess[]> {
  const fixture = await startFixture({ era: 'legacy' })
  open.push(fixture)
  const config = { name: 'demo', remote_url: fixture.url, remote_policy: { allow_loopback: true }, transport: 'streamable-http' }
  return await Promise.all(Array.from({ length: REPLICAS }, () => spawnReadyRunner({ ...config, ...document }, ENV)))
}

async function overStdio(document: object): Promise<RunnerProcess[]> {
  const fleet = await PodFleet.start(REPLICAS)
  open.push({
    async [Symbol.asyncDispose]() {
      await fleet[Symbol.asyncDispose]()
      expect(fleet.mostAttached).toBe(1)
    },
  })
  const replica = (at: number) => spawnStdioReplica({ owner: `proxy-${at}`, attachUrl: fleet.url, pods: fleet.names, document }, ENV)
  return await Promise.all(Array.from({ length: REPLICAS }, (_, at) => replica(at)))
}

/** Answers that all clients received. */
class Tally {
  answered = 0
  limitedCalls = 0
  readonly wrong: string[] = []
  readonly lost: string[] = []
}

/** A client that reaches one replica after the other, as behind a Service without affinity, until the signal aborts. */
async function use(
  client: { session: string; at: number },
  replicas: readonly RunnerProcess[],
  tally: Tally,
  signal: AbortSignal,
): Promise<void> {
  for (let n = 0; !signal.aborted; n++) {
    const replica = replicas[(client.at + n) % replicas.length] as RunnerProcess
    const wire = new WireClient(replica.url)
    wire.sessionId = client.session
    const text = `${client.session}-${n};`
    const isLimited = n % 4 === 3
    // A replica that is gone refuses the connection: the client goes on to the next one.
    const answer = await (isLimited ? wire.call(LIMITED) : wire.call('echo', { text })).catch(() => undefined)
    if (answer === undefined) continue
    if (answer.status === 404) tally.lost.push(text)
    if (answer.status !== 200) await sleep(5)
    else if (isLimited) tally.limitedCalls++
    else if (JSON.stringify(answer.messages.at(-1)).includes(text)) tally.answered++
    else tally.wrong.push(answer.text)
  }
}

describeRedis('three replicas with Sentinels', () => {
  it.each<[string, Start]>([
    ['streamable HTTP', overHttp],
    ['stdio', overStdio],
  ])(
    'over %s: a killed primary and a killed replica lose no session, mix up no answers and add at most a bucket each',
    async (_, start) => {
      const sentinels = await startSentinels({ password: 'pa55' })
      open.push(sentinels)
      const addresses = sentinels.addresses.map(({ host, port }) => `${host}:${port}`)
      const replicas = await start({
        ...limits,
        scaling_config: { session_redis: { sentinel: { master_name: sentinels.masterName, addresses } } },
      })
      open.push(...replicas)
      const sessions: string[] = []
      for (let at = 0; at < SESSIONS; at++) {
        const wire = new WireClient((replicas[at % REPLICAS] as RunnerProcess).url)
        await expect.poll(async () => (await wire.initialize()).status, { timeout: 60_000, interval: 50 }).toBe(200)
        sessions.push(wire.sessionId ?? '')
      }
      expect(new Set(sessions).size).toBe(SESSIONS)
      const isCopied = async (id: string) => (await sentinels.replica.command('EXISTS', `thv:proxy:session:${id}`)).includes(':1')
      for (const id of sessions) await expect.poll(() => isCopied(id), { timeout: 30_000 }).toBe(true)

      const tally = new Tally()
      const load = new AbortController()
      const clients = sessions.map((session, at) => use({ session, at }, replicas, tally, load.signal))
      const moreAnswers = async (count: number) => {
        const before = tally.answered
        await expect.poll(() => tally.answered - before, { timeout: 90_000, interval: 20 }).toBeGreaterThanOrEqual(count)
      }
      await moreAnswers(50)
      await sentinels.primary.kill()
      await moreAnswers(50)
      const isPrimary = async () => (await sentinels.replica.command('ROLE')).includes('master')
      await expect.poll(isPrimary, { timeout: 60_000, interval: 50 }).toBe(true)
      await moreAnswers(50)
      await replicas[0]?.kill()
      await moreAnswers(100)
      load.abort()
      await Promise.all(clients)

      expect(tally.wrong).toEqual([])
      expect(tally.lost).toEqual([])
      expect(tally.limitedCalls).toBeGreaterThanOrEqual(BUCKET)
      expect(tally.limitedCalls).toBeLessThanOrEqual(BUCKET * (1 + REPLICAS))
      // Every session goes on, wherever it was before.
      for (const [at, session] of sessions.entries()) {
        const wire = new WireClient((replicas[1 + (at % 2)] as RunnerProcess).url)
        wire.sessionId = session
        const isServed = async () => (await wire.call('echo', { text: 'still here' })).text.includes('still here')
        await expect.poll(isServed, { timeout: 60_000, interval: 50 }).toBe(true)
      }
    },
  )
})
