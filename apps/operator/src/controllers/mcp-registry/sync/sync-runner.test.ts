import { TestClock } from '@thv/kernel/clock'
import { type ConfigMap, setControllerReference } from '@thv/kube'
import { type MCPRegistry, mcpRegistryType } from '@thv/resources/kinds/mcp-registry/schema'
import { createLogger } from '@thv/telemetry/log'
import { describe, expect, it } from 'vitest'
import type { ChildOutcome } from '../../../deployment/child-applier.ts'
import type { Env } from '../../../environment.ts'
import { planOf } from '../testing/plan-registry.ts'
import { createSyncRunner } from './sync-runner.ts'
import { syncSource } from './sync-source.ts'

const spec: MCPRegistry['spec'] = { source: { configMap: { name: 'servers' } } }
const registry = { metadata: { name: 'demo', namespace: 'team', uid: 'uid-demo', generation: 1 }, spec } as MCPRegistry
const { signal } = new AbortController()

/** A runner over a namespace with the ConfigMap `servers`; `ensure` stands for the write of a ConfigMap. */
function runnerWith(ensure: (object: ConfigMap, signal: AbortSignal) => Promise<ChildOutcome>, servers = 1, isBinary = false) {
  const maps: ConfigMap[] = []
  const entries = Array.from({ length: servers }, (_, index) => [
    `server-${index}`,
    { image: 'example.com/a:1', description: 'x'.repeat(900) },
  ])
  const text = JSON.stringify({ servers: Object.fromEntries(entries) })
  const held = isBinary
    ? { data: {}, binaryData: { 'registry.json': Buffer.from(text).toString('base64') } }
    : { data: { 'registry.json': text } }
  const caches = { of: () => ({ list: () => maps }), configMapContent: async () => ({ uid: 'u', resourceVersion: '1', ...held }) }
  const clock = new TestClock(Date.parse('2026-03-01T10:00:00Z'))
  const children = {
    ensure: (_owner: unknown, child: { object: ConfigMap }, until: AbortSignal) => ensure(child.object, until),
    remove: async () => {},
  }
  const env = { caches, children, clock, log: createLogger({ write: () => {} }) } as unknown as Env
  return { runner: createSyncRunner(env), caches, clock, maps, step: { registry, plan: planOf(spec), signal } }
}

describe('createSyncRunner', () => {
  it('writes nothing more once the controller has stopped, as it does without the lease', async () => {
    const write = Promise.withResolvers<ChildOutcome>()
    const begun = Promise.withResolvers<AbortSignal>()
    const { runner, caches, step } = runnerWith(async (_, until) => {
      begun.resolve(until)
      return await write.promise
    })
    const unsubscribe = syncSource(caches).subscribe(() => {})
    const facts = runner.step(step)
    const until = await begun.promise
    expect(until.aborted).toBe(false)
    unsubscribe()
    expect(until.aborted).toBe(true)
    write.resolve({ kind: 'applied' })
    expect((await facts).status).toBeUndefined()
  })

  it('begins nothing for a reconcile that was stopped', async () => {
    let writes = 0
    const { runner, step } = runnerWith(async () => {
      writes += 1
      return { kind: 'applied' }
    })
    await expect(runner.step({ ...step, signal: AbortSignal.abort() })).rejects.toThrow()
    expect(writes).toBe(0)
  })

  it('tries again after 30 s, then after 60 s, when the data cannot be stored', async () => {
    let writes = 0
    const { runner, clock, step } = runnerWith(async () => {
      writes += 1
      throw new Error('https://me:hidden-word@git.example.com is away')
    })
    const { status, ...first } = await runner.step(step)
    expect({ ...first, status }).toMatchObject({ nextMs: 30_000, status: { phase: 'Failed', attemptCount: 1 } })
    expect(status?.message).toContain('git.example.com is away')
    expect(status?.message).not.toContain('hidden-word')
    await clock.advance(10_000)
    expect(await runner.step(step)).toMatchObject({ nextMs: 20_000, status: { attemptCount: 1 } })
    expect(writes).toBe(1)
    await clock.advance(20_000)
    expect(await runner.step(step)).toMatchObject({ nextMs: 60_000, status: { attemptCount: 2 } })
    expect(writes).toBe(2)
  })

  it('writes all ConfigMaps again when one of several is deleted', async () => {
    const written: string[] = []
    const { runner, clock, step, maps } = runnerWith(async (object) => {
      written.push(object.metadata.name)
      const others = maps.filter(({ metadata }) => metadata.name !== object.metadata.name)
      maps.splice(0, maps.length, ...others, setControllerReference(object, { object: registry, type: mcpRegistryType }))
      return { kind: 'applied' }
    }, 1_500)
    expect(await runner.step(step)).toMatchObject({ status: { phase: 'Complete', serverCount: 1_500 } })
    await clock.advance(60_000)
    const count = written.length
    expect(count).toBe(16)
    await runner.step(step)
    expect(written.length).toBe(count)
    maps.splice(3, 1)
    await runner.step(step)
    expect(written.length).toBe(2 * count)
    expect(maps.length).toBe(16)
  })

  it('reads a source ConfigMap whose file is binary data', async () => {
    const stored: string[] = []
    const { runner, step } = runnerWith(
      async (object) => {
        stored.push(object.data?.['registry.json'] ?? '')
        return { kind: 'applied' }
      },
      1,
      true,
    )
    expect(await runner.step(step)).toMatchObject({ status: { phase: 'Complete', serverCount: 1 } })
    expect(stored.join()).toContain('server-0')
  })

  it('tells of the storage only while the spec has a source', async () => {
    const { runner, step } = runnerWith(async () => ({ kind: 'applied' }))
    await runner.step(step)
    const key = { namespace: 'team', name: 'demo' }
    expect(runner.facts(key, step.plan.spec).storageRef).toEqual({ type: 'configmap', configMapRef: { name: 'demo-registry-storage' } })
    expect(runner.facts(key, planOf({ configYAML: 'auth: {mode: anonymous}' }).spec)).toEqual({})
  })
})
