import { randomUUID } from 'node:crypto'
import type { AuthStore } from '@thv/store/auth/auth-store'
import { createRecordCipher } from '@thv/store/redis/record-cipher'
import { RedisAuthStore } from '@thv/store/redis/redis-auth-store'
import { openRedis, redisScript } from '@thv/store/redis/redis-client'
import { send, startSentinels, type TestRedis, type TestSentinels } from '@thv/testkit/redis/redis'
import { redisProblem } from '@thv/testkit/redis/redis-programs'
import { positiveCount } from '@thv/testkit/run/run-environment'
import { describe, expect, it, vi } from 'vitest'
import { startTestReplicas, type TestReplicas } from './testing/test-replicas.ts'
import { type HeldTokens, Ledger, PatientClient, type WorkKind } from './testing/traffic.ts'
import { UpstreamRefused } from './upstream/upstream-refused.ts'
import type { UpstreamRefresher, UpstreamTokens } from './upstream-tokens.ts'
import { UpstreamVault } from './vault/upstream-vault.ts'

/*
 * Three replicas of an authorization server on Sentinel. Each login goes over all three; the primary is killed in the middle of one, of a refresh,
 * of a write to the vault, while others go on. SOAK_FAILOVERS=50 (`npm run soak`) makes more rounds.
 */

const ROUNDS = positiveCount('SOAK_FAILOVERS', 5)
const PREFIX = 'thv:auth:{team:server}:'
const PASSWORD = 'pa55'
const KINDS: readonly WorkKind[] = ['logins', 'refreshes', 'vault writes']
/** Of each kind, between two faults. */
const ENOUGH = 2
const describeRedis = redisProblem() === undefined || process.env['CI'] ? describe : describe.skip
const PING = redisScript("return redis.call('PING')")

/** Takes each refresh token once. Its access tokens end at once, so that every use is a refresh. */
class StrictProvider implements UpstreamRefresher {
  readonly provider = 'github'
  readonly generation = 'g'
  readonly #good = new Set<string>()
  refused = 0

  issue(): { accessToken: string; refreshToken: string; expiresAt: number } {
    const refreshToken = randomUUID()
    this.#good.add(refreshToken)
    return { accessToken: randomUUID(), refreshToken, expiresAt: Date.now() }
  }

  async refresh(refreshToken: string) {
    if (this.#good.delete(refreshToken)) return this.issue()
    this.refused++
    throw new UpstreamRefused('invalid_grant')
  }
}

describeRedis('replicas on Sentinel whose primary is killed', () => {
  it(
    'finish logins that go over three of them, lose no token that a client has, use none twice, and burn none of a provider [002-095]',
    async () => {
      await using stack = new AsyncDisposableStack()
      const sentinels = stack.use(await startSentinels({ password: PASSWORD, failoverTimeoutMs: 1_500 }))
      const fault = new Fault(sentinels.primary)
      const provider = new StrictProvider()
      const vaults: UpstreamVault[] = []
      const stores = await Promise.all([1, 2, 3].map(async () => fault.watching(await openStore(sentinels, fault, stack))))
      const servers = stack.use(
        await startTestReplicas({
          stores,
          tokens(upstreams, sealed) {
            const vault = new UpstreamVault({ ...sealed, cipher: () => sealed.cipher, refreshers: [...upstreams, provider] })
            vaults.push(vault)
            return vault
          },
        }),
      )
      const client = new PatientClient(servers.issuer, (await servers.replicas[0]?.client()) ?? '')
      const ledger = new Ledger()
      const scene: Scene = { ledger, client, fault, held: [] }
      const { held } = scene
      await logIn(scene, 'before')
      expect(ledger.counts.logins.ended).toBe(1)
      expect(replicasOf(servers, ['authorize', 'callback', 'token'])).toHaveLength(3)

      const stop = new AbortController()
      const repeat = async (work: (n: number) => Promise<void>) => {
        for (let n = 0; !stop.signal.aborted; n++) {
          await work(n)
          await pause(20)
        }
      }
      const traffic = [
        repeat((n) => logIn(scene, `ada-${n % 5}`)),
        repeat((n) => logIn(scene, `ben-${n % 5}`)),
        repeat((n) => refresh(scene, held[n % held.length])),
        repeat((n) => refresh(scene, held[held.length - 1 - (n % held.length)])),
        ...vaults.map(async (vault, index) => {
          const accounts = ['shared', `own-${index}`]
          for (const account of accounts)
            if (account !== 'shared' || index === 0)
              await vault.save({ account, provider: 'github', subject: account, generation: 'g', tokens: provider.issue() })
          await repeat((n) => useVault(scene, vault, accounts[n % 2] ?? ''))
        }),
      ]
      stack.defer(async () => {
        stop.abort()
        await Promise.allSettled(traffic)
      })

      let [primary, replica]: [TestRedis, TestRedis] = [sentinels.primary, sentinels.replica]
      for (let round = 0; round < ROUNDS; round++) {
        await progress(ledger)
        await fault.killDuring(KINDS[round % KINDS.length] ?? 'logins', primary)
        await progress(ledger) // only a new primary makes that possible
        await primary.start()
        await primary.command('REPLICAOF', replica.host, String(replica.port))
        await inSync(sentinels, { primary: replica, replica: primary })
        ;[primary, replica] = [replica, primary]
        fault.hasReplica = true
        servers.shift()
      }
      stop.abort()
      await Promise.all(traffic)

      // Whatever a client received is known, and good once.
      for (const each of held) await refresh(scene, each)
      for (const vault of vaults) await useVault(scene, vault, 'shared')
      console.log(`${ROUNDS} failovers\n${ledger.table()}`)
      expect(ledger.problems).toEqual([])
      for (const kind of KINDS) expect(ledger.counts[kind].ended).toBeGreaterThan(ENOUGH * ROUNDS)
      expect(provider.refused).toBeLessThanOrEqual(fault.missed)
      for (const each of held) expect(await client.replay(each)).toBe(400)
    },
    120_000 + ROUNDS * 60_000,
  )
})

/** Kills a primary while an operation of some kind is on its way to it. */
class Fault {
  /** Writes that a replica did not have in time, though there was one: only these can be lost. */
  missed = 0
  hasReplica = true
  #primary: TestRedis
  #during: WorkKind | undefined
  #killed = Promise.withResolvers<void>()
  #kills = 0

  constructor(primary: TestRedis) {
    this.#primary = primary
  }

  async killDuring(kind: WorkKind, primary: TestRedis): Promise<void> {
    this.#primary = primary
    this.#killed = Promise.withResolvers()
    this.#during = kind
    const timer = setTimeout(() => this.#killed.reject(new Error(`there were no ${kind}`)), 90_000)
    await this.#killed.promise
    clearTimeout(timer)
    this.hasReplica = false
  }

  onUnacknowledged(): void {
    if (this.hasReplica) this.missed++
  }

  watching(store: AuthStore): AuthStore {
    const sent = <T>(kind: WorkKind, operation: () => Promise<T>): Promise<T> => {
      if (this.#during !== kind) return operation()
      this.#during = undefined
      // In turns: the operation has just left, or meets a server that is gone.
      const isSentFirst = this.#kills++ % 2 === 0
      const operated = isSentFirst ? operation() : undefined
      this.#primary.kill().then(this.#killed.resolve, this.#killed.reject)
      return operated ?? operation()
    }
    return new Proxy(store, {
      get(target, name) {
        const member: unknown = Reflect.get(target, name, target)
        if (typeof member !== 'function') return member
        return (...args: never[]) => {
          const operation = () => (member as (...all: never[]) => Promise<unknown>).apply(target, args)
          if (name === 'take' && args[0] === 'pending') return sent('logins', operation)
          if (name === 'put' && args[0] === 'upstream') return sent('vault writes', operation)
          return name === 'replace' && isRefresh(args[0]) ? sent('refreshes', operation) : operation()
        }
      },
    })
  }
}

function isRefresh(replacement: unknown): boolean {
  return (replacement as Parameters<AuthStore['replace']>[0]).from.kind === 'refresh'
}

async function openStore({ masterName, addresses }: TestSentinels, fault: Fault, stack: AsyncDisposableStack): Promise<AuthStore> {
  const onUnacknowledged = () => fault.onUnacknowledged()
  const redis = stack.use(
    await openRedis({ sentinel: { masterName, addresses }, password: PASSWORD, db: 0, timeoutMs: 2_000, onUnacknowledged }),
  )
  await vi.waitFor(() => redis.run(PING, ['{x}'], []), { timeout: 30_000, interval: 50 })
  // A failover on a busy machine takes longer than one that clients should wait for.
  return new RedisAuthStore({ redis, cipher: createRecordCipher(['secret']), keyPrefix: PREFIX, patienceMs: 60_000 })
}

interface Scene {
  readonly ledger: Ledger
  readonly client: PatientClient
  readonly fault: Fault
  readonly held: HeldTokens[]
}

async function logIn({ ledger, client, fault, held }: Scene, user: string): Promise<void> {
  const { missed } = fault
  const isAcknowledged = () => fault.missed === missed
  const work = async () => {
    const tokens = await client.logIn(user)
    if (tokens === 'retry') return 'retry'
    held.push({ ...tokens, isAcknowledged: isAcknowledged() })
    return 'ended'
  }
  await ledger.enter('logins', work, isAcknowledged)
}

async function refresh({ ledger, client, fault }: Scene, tokens: HeldTokens | undefined): Promise<void> {
  if (tokens === undefined || tokens.isBusy) return
  tokens.isBusy = true
  const { missed } = fault
  const work = async () => {
    await client.refresh(tokens)
    tokens.isAcknowledged = fault.missed === missed
    tokens.isBusy = false
    return 'ended' as const
  }
  await ledger.enter('refreshes', work, () => tokens.isAcknowledged)
}

async function useVault({ ledger, fault }: Scene, vault: UpstreamTokens, account: string): Promise<void> {
  const work = async () => {
    for (let attempt = 0; attempt < 3; attempt++) {
      const { kind } = await vault.use({ account, provider: 'github' })
      if (kind === 'usable') return 'ended'
      if (kind === 'unavailable') return 'retry'
      // The first replica saves the shared row at its start.
      if (kind === 'ended' || account !== 'shared') throw new Error(`the row is ${kind}`)
      await pause(100)
    }
    return 'retry'
  }
  await ledger.enter('vault writes', work, () => fault.missed === 0)
}

function replicasOf({ served }: TestReplicas, steps: readonly Parameters<TestReplicas['served']['get']>[0][]): readonly number[] {
  return [...new Set(steps.flatMap((step) => [...(served.get(step) ?? [])]))]
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** Until work of every kind has begun and ended. */
async function progress({ counts, problems }: Ledger): Promise<void> {
  const before = KINDS.map((kind) => counts[kind].ended)
  const isEnough = () => {
    expect(problems).toEqual([])
    for (const [index, kind] of KINDS.entries()) expect(counts[kind].ended).toBeGreaterThanOrEqual((before[index] ?? 0) + ENOUGH)
  }
  await vi.waitFor(isEnough, { timeout: 120_000, interval: 50 })
}

/** The Sentinels must know the replica before they can choose it. */
async function inSync({ addresses, masterName }: TestSentinels, pair: { primary: TestRedis; replica: TestRedis }): Promise<void> {
  const isSynced = async () => {
    expect(await pair.replica.command('INFO', 'replication')).toContain('master_link_status:up')
    for (const { port } of addresses) {
      const known = await send({ port }, ['SENTINEL', 'REPLICAS', masterName])
      expect(known).toMatch(new RegExp(`port\r\n\\$\\d+\r\n${pair.replica.port}\r\n`))
      expect(known).toMatch(/flags\r\n\$5\r\nslave\r\n/)
      expect(known).toContain('master-link-status\r\n$2\r\nok')
    }
  }
  await vi.waitFor(isSynced, { timeout: 60_000, interval: 100 })
}
