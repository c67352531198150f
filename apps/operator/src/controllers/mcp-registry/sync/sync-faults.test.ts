import { readDocument } from '@thv/catalog/merge/read-document'
import { TestClock } from '@thv/kernel/clock'
import { jsonEqual } from '@thv/kernel/json'
import { type ConfigMap, setControllerReference } from '@thv/kube'
import { type MCPRegistry, mcpRegistryType } from '@thv/resources/kinds/mcp-registry/schema'
import { createLogger } from '@thv/telemetry/log'
import { describe, expect, it } from 'vitest'
import type { ChildOutcome } from '../../../deployment/child-applier.ts'
import type { Env } from '../../../environment.ts'
import { planOf } from '../testing/plan-registry.ts'
import { storedData } from './fetch-documents.ts'
import type { FetchJob, FetchOutcome } from './fetch-job.ts'
import { createSyncRunner } from './sync-runner.ts'
import { syncSource } from './sync-source.ts'

const PASSWORD = 'hunter2-and-more'
const SPEC: MCPRegistry['spec'] = {
  source: {
    git: {
      repository: 'https://git.example.com/servers',
      branch: 'main',
      auth: { username: 'reader', passwordSecretRef: { name: 'git-password', key: 'password' } },
    },
  },
}
const HOUR = 3_600_000

/** Registry data with this word in it; more than 1 MiB of it needs several ConfigMaps. */
function data(word: string, servers = 1): FetchOutcome {
  const entries = Array.from({ length: servers }, (_, index) => [
    `server-${index}`,
    { image: `example.com/${word}:1`, overview: word.repeat(150) },
  ])
  return storedData(readDocument(JSON.stringify({ servers: Object.fromEntries(entries) }), 'toolhive'), undefined)
}

const failure = (message: string): FetchOutcome => ({ ok: false, reason: 'FetchFailed', message })

/** A cluster that outlives its operators: what is stored, the status, the clock. */
class Cluster {
  readonly clock = new TestClock(Date.parse('2026-03-01T10:00:00Z'))
  readonly maps = new Map<string, ConfigMap>()
  readonly log: string[] = []
  registry = { metadata: { name: 'demo', namespace: 'team', uid: 'uid-demo', generation: 1 }, spec: SPEC } as MCPRegistry
  secret: string | undefined = PASSWORD
  writes = 0
  jobs: FetchJob[] = []
  fetch: (job: FetchJob) => Promise<FetchOutcome> = async () => data('first')
  /** Called before each write; throws where the API server would refuse it. */
  beforeWrite: (map: ConfigMap) => Promise<ChildOutcome | undefined> = async () => undefined

  texts(): string {
    return [...this.maps.values()].map((map) => map.data?.['registry.json'] ?? '').join('')
  }

  /** Everything that others can read. */
  visible(): string {
    return JSON.stringify([this.registry.status, [...this.maps.values()], this.log])
  }

  operator() {
    const caches = { of: () => ({ list: () => [...this.maps.values()] }) }
    const children = {
      ensure: async (_owner: unknown, { object }: { object: ConfigMap }, signal: AbortSignal): Promise<ChildOutcome> => {
        const refused = await this.beforeWrite(object)
        signal.throwIfAborted()
        if (refused !== undefined) return refused
        const wanted = setControllerReference(object, { object: this.registry, type: mcpRegistryType })
        if (jsonEqual(this.maps.get(object.metadata.name), wanted)) return { kind: 'unchanged' }
        this.writes += 1
        this.maps.set(object.metadata.name, wanted)
        return { kind: 'applied' }
      },
      remove: async (_owner: unknown, { name }: { name: string }) => void this.maps.delete(name),
    }
    const client = {
      tryGet: async () =>
        this.secret === undefined ? undefined : { metadata: {}, data: { password: Buffer.from(this.secret).toString('base64') } },
    }
    const env = {
      ...{ caches, children, client, clock: this.clock, settings: { remotes: {} } },
      log: createLogger({ write: (line) => void this.log.push(line) }),
    } as unknown as Env
    const runner = createSyncRunner(env, async (job) => {
      this.jobs.push(job)
      return await this.fetch(job)
    })
    let woken = Promise.withResolvers<void>()
    const kill = syncSource(caches).subscribe(() => woken.resolve())
    const step = async () => {
      const { signal } = new AbortController()
      return await runner.step({ registry: this.registry, plan: planOf(this.registry.spec, { metadata: this.registry.metadata }), signal })
    }
    return {
      /** Ends the process: nothing more of it reaches the cluster. */
      kill,
      step,
      /** Reconciles until the sync that this starts has ended and its status is written. */
      settle: async () => {
        woken = Promise.withResolvers<void>()
        const first = await step()
        const facts = first.status?.phase === 'Syncing' ? await woken.promise.then(step) : first
        this.write(facts.status)
        return facts
      },
    }
  }

  write(syncStatus: NonNullable<MCPRegistry['status']>['syncStatus']): void {
    this.registry = { ...this.registry, status: { ...this.registry.status, ...(syncStatus && { syncStatus }) } } as MCPRegistry
  }
}

const reasonOf = ({ conditions }: { conditions: readonly { type: string; status: string; reason: string }[] }) =>
  conditions.filter(({ status }) => status === 'False').map(({ type, reason }) => `${type}/${reason}`)

describe('a source that fails', () => {
  it('for an hour is asked less and less often while the last good data are served, and is current with its first answer', async () => {
    const cluster = new Cluster()
    const { settle } = cluster.operator()
    expect(await settle()).toMatchObject({ status: { phase: 'Complete' } })
    const good = cluster.texts()
    cluster.fetch = async () => failure('connect ECONNREFUSED 192.0.2.1:443')
    cluster.registry = { ...cluster.registry, spec: { ...SPEC, syncPolicy: { interval: '10m' } } }
    const waits: number[] = []
    const since = cluster.clock.now()
    await cluster.clock.advance(600_000)
    while (cluster.clock.now() - since < HOUR) {
      const facts = await settle()
      expect(reasonOf(facts)).toEqual(['SyncSuccessful/FetchFailed'])
      expect(cluster.texts()).toBe(good)
      expect(facts.status?.message).toContain('the data of 2026-03-01T10:00:00.000Z are served')
      const { nextMs = 0 } = await cluster.operator().step() // also a new operator waits
      waits.push(nextMs)
      await cluster.clock.advance(nextMs)
    }
    expect(waits.slice(0, 6)).toEqual([30_000, 60_000, 120_000, 240_000, 300_000, 300_000])
    expect(cluster.jobs).toHaveLength(waits.length + 1)
    cluster.fetch = async () => data('second')
    expect(await settle()).toMatchObject({ status: { phase: 'Complete', attemptCount: 0 } })
    expect(cluster.texts()).toBe(good.replaceAll('first', 'second'))
  })

  it('keeps its stored data through failures of every kind', async () => {
    const cluster = new Cluster()
    const { settle } = cluster.operator()
    await settle()
    const good = cluster.texts()
    const kinds: [FetchOutcome, string[]][] = [
      [failure('no such branch: main'), ['SyncSuccessful/FetchFailed']],
      [{ ok: false, reason: 'InvalidData', message: 'it has no servers' }, ['SyncSuccessful/InvalidData', 'DataValid/InvalidData']],
      [{ ok: false, reason: 'StorageTooLarge', message: 'more than 32 MiB' }, ['SyncSuccessful/StorageTooLarge']],
      [
        { ok: false, reason: 'ValidationFailed', message: 'ssh:// is not spoken' },
        ['SyncSuccessful/ValidationFailed', 'SourceAvailable/ValidationFailed'],
      ],
    ]
    for (const [outcome, reasons] of kinds) {
      cluster.fetch = async () => outcome
      cluster.write({ ...cluster.registry.status?.syncStatus, phase: 'Syncing' })
      await cluster.clock.advance(HOUR)
      expect(reasonOf(await cluster.operator().settle())).toEqual(reasons)
      expect(cluster.texts()).toBe(good)
    }
  })

  it('asks for its password at each sync: missing, wrong, changed and right, and shows it nowhere', async () => {
    const cluster = new Cluster()
    const { settle } = cluster.operator()
    const sync = async (secret: string | undefined) => {
      cluster.secret = secret
      await cluster.clock.advance(HOUR)
      return await settle()
    }
    cluster.fetch = async ({ password }) =>
      password === PASSWORD ? data('first') : failure('HTTP 401 for https://git.example.com/servers')
    const missing = await sync(undefined)
    expect(reasonOf(missing)).toEqual(['SyncSuccessful/SourceNotFound', 'SourceAvailable/SourceNotFound'])
    expect(missing.status?.message).toContain('Secret git-password with key password does not exist')
    expect(cluster.jobs).toEqual([])
    expect(reasonOf(await sync('wrong-hunter2'))).toEqual(['SyncSuccessful/FetchFailed'])
    expect(await sync(PASSWORD)).toMatchObject({ status: { phase: 'Complete' } })
    cluster.maps.clear()
    expect(reasonOf(await sync('revoked-hunter2'))).toEqual(['SyncSuccessful/FetchFailed'])
    expect(await sync(`${PASSWORD}\n`)).toMatchObject({ status: { phase: 'Complete' } })
    expect(cluster.jobs.map(({ password }) => password)).toEqual(['wrong-hunter2', PASSWORD, 'revoked-hunter2', PASSWORD])
    expect(cluster.visible()).not.toContain('hunter2')
  })
})

describe('an operator that is killed', () => {
  const never = () => new Promise<never>(() => {})

  it('between fetch and store leaves the old data, and the next one stores the new', async () => {
    const cluster = new Cluster()
    await cluster.operator().settle()
    const good = cluster.texts()
    const fetched = Promise.withResolvers<FetchOutcome>()
    cluster.fetch = () => fetched.promise
    cluster.maps.delete('demo-registry-storage')
    await cluster.clock.advance(HOUR)
    const first = cluster.operator()
    cluster.write((await first.step()).status)
    first.kill()
    fetched.resolve(data('second'))
    await cluster.clock.advance(0)
    expect([cluster.texts(), cluster.registry.status?.syncStatus?.phase]).toEqual(['', 'Syncing'])
    await cluster.clock.advance(HOUR)
    expect(await cluster.operator().settle()).toMatchObject({ status: { phase: 'Complete' } })
    expect(cluster.texts()).toBe(good.replaceAll('first', 'second'))
  })

  it.each(['Complete', 'Syncing'] as const)(
    'between two ConfigMaps is followed by one that writes the rest, after the status said %s',
    async (phase) => {
      const cluster = new Cluster()
      cluster.fetch = async () => data('first', 1_500)
      await cluster.operator().settle()
      expect(cluster.maps.size).toBe(16)
      cluster.fetch = async () => data('other', 1_500)
      cluster.beforeWrite = async () => (cluster.writes >= 16 + 5 ? await never() : undefined)
      await cluster.clock.advance(HOUR)
      cluster.write({ ...cluster.registry.status?.syncStatus, phase: 'Syncing' })
      const first = cluster.operator()
      await first.step()
      for (let turn = 0; turn < 200 && cluster.writes < 21; turn++) await cluster.clock.advance(0)
      first.kill()
      expect(cluster.writes).toBe(21)
      expect([cluster.texts().includes('first'), cluster.texts().includes('other')]).toEqual([true, true])
      cluster.beforeWrite = async () => undefined
      cluster.write({ ...cluster.registry.status?.syncStatus, phase })
      await cluster.clock.advance(HOUR)
      expect(await cluster.operator().settle()).toMatchObject({ status: { phase: 'Complete' } })
      expect(cluster.writes).toBe(16 + 16)
      expect(cluster.texts()).not.toContain('first')
    },
  )

  it('before the status leaves nothing to write but the status', async () => {
    const cluster = new Cluster()
    const first = cluster.operator()
    expect((await first.step()).status?.phase).toBe('Syncing')
    cluster.write({ phase: 'Syncing' })
    for (let turn = 0; turn < 200 && cluster.writes < 1; turn++) await cluster.clock.advance(0)
    first.kill()
    expect(cluster.registry.status?.syncStatus).toEqual({ phase: 'Syncing' })
    await cluster.clock.advance(HOUR)
    expect(await cluster.operator().settle()).toMatchObject({ status: { phase: 'Complete' } })
    expect(cluster.writes).toBe(1)
  })

  it('or has lost its lease writes nothing beside the one that has it', async () => {
    const cluster = new Cluster()
    const late = Promise.withResolvers<FetchOutcome>()
    cluster.fetch = () => late.promise
    const first = cluster.operator()
    await first.step()
    first.kill() // the lease is lost, the process goes on
    cluster.fetch = async () => data('second')
    expect(await cluster.operator().settle()).toMatchObject({ status: { phase: 'Complete' } })
    const stored = cluster.texts()
    late.resolve(data('first'))
    for (let turn = 0; turn < 20; turn++) await cluster.clock.advance(0)
    expect([cluster.texts(), cluster.writes]).toEqual([stored, 1])
  })
})

describe('storage that cannot be written', () => {
  it.each([
    ['while the API server restarts', 'apply configmaps team/demo-registry-storage: connect ECONNREFUSED'],
    [
      'in a namespace that is being deleted',
      'apply configmaps: forbidden: unable to create new content because it is being terminated (403)',
    ],
  ])('%s has its condition, and heals by itself', async (_title, message) => {
    const cluster = new Cluster()
    cluster.fetch = async () => data('first', 1_500)
    cluster.beforeWrite = async () => {
      if (cluster.writes >= 3) throw new Error(message)
      return undefined
    }
    const { settle } = cluster.operator()
    const facts = await settle()
    expect(reasonOf(facts)).toEqual(['SyncSuccessful/StorageFailed'])
    expect(facts.status?.message).toContain(message)
    cluster.beforeWrite = async () => undefined
    await cluster.clock.advance(30_000)
    expect(await settle()).toMatchObject({ status: { phase: 'Complete' } })
    expect(cluster.maps.size).toBe(16)
  })

  it('because it is of somebody else is left alone and named, until it is gone', async () => {
    const cluster = new Cluster()
    cluster.beforeWrite = async ({ metadata }) => ({
      kind: 'foreign',
      name: metadata.name,
      childKind: 'ConfigMap',
      controller: 'Deployment x',
    })
    const { settle } = cluster.operator()
    const facts = await settle()
    expect(reasonOf(facts)).toEqual(['SyncSuccessful/StorageFailed'])
    expect(facts.status?.message).toContain('ConfigMap demo-registry-storage belongs to Deployment x')
    expect(cluster.writes).toBe(0)
    cluster.beforeWrite = async () => undefined
    await cluster.clock.advance(30_000)
    expect(await settle()).toMatchObject({ status: { phase: 'Complete' } })
  })
})
