import { mkdtempSync, rmSync } from 'node:fs'
import { rename, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { configHash } from '@thv/kernel/config-hash'
import { CollectingLog } from '@thv/telemetry/testing/collecting-log'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { InvalidOptions } from '../pipeline/invalid-options.ts'
import { LivePolicies, type PolicyLoad } from './live-policies.ts'

let folder: string
let path: string
let live: LivePolicies | undefined
const log = new CollectingLog()
const loads: PolicyLoad[] = []

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'policies-'))
  path = join(folder, 'authz.json')
  loads.length = 0
})

afterEach(async () => {
  await live?.close()
  live = undefined
  rmSync(folder, { recursive: true })
})

const PERMIT = (tool: string) => `permit(principal, action, resource == Tool::"${tool}");`
const document = (...policies: string[]) => JSON.stringify({ version: '1.0', type: 'cedarv1', cedar: { policies, entities_json: '[]' } })

/** As editors and Kubernetes do. */
async function replace(text: string): Promise<void> {
  await writeFile(`${path}.new`, text)
  await rename(`${path}.new`, path)
}

async function follow(): Promise<LivePolicies> {
  live = await LivePolicies.open({ source: { path }, server: 'test' }, { log, onLoaded: (event) => loads.push(event) })
  return live
}

const allows = ({ current }: LivePolicies, name: string) =>
  current.enforced.decide(undefined, { action: 'call_tool', name, visibleName: name, args: undefined, hints: undefined }).allowed
const SOON = { timeout: 30_000, interval: 10 }

describe('policies of a file', () => {
  it('follow the file, as whole sets', async () => {
    await replace(document(PERMIT('a')))
    const policies = await follow()
    expect([allows(policies, 'a'), allows(policies, 'b')]).toEqual([true, false])
    const before = policies.current
    await replace(document(PERMIT('b')))
    await expect.poll(() => allows(policies, 'b'), SOON).toBe(true)
    expect(allows(policies, 'a')).toBe(false)
    expect(before.hash).not.toBe(policies.current.hash)
    expect(loads.map(({ outcome }) => outcome)).toEqual(['ok', 'ok'])
  })

  it('stay as they are while the file is bad or gone, and go on when it heals', async () => {
    await replace(document(PERMIT('a')))
    const policies = await follow()
    const { current } = policies
    const failed = (times: number) =>
      expect.poll(() => loads.filter(({ outcome }) => outcome === 'failed').length, SOON).toBeGreaterThanOrEqual(times)
    await replace(document('permit('))
    await failed(1)
    rmSync(path)
    await failed(2)
    expect(policies.current).toBe(current)
    await replace(document(PERMIT('b')))
    await expect.poll(() => allows(policies, 'b'), SOON).toBe(true)
  })

  it('stay as they are while the file names another provider, whose claims only the next start sees', async () => {
    const of = (tool: string, provider?: string) => {
      const cedar = { policies: [PERMIT(tool)], entities_json: '[]', primary_upstream_provider: provider }
      return JSON.stringify({ version: '1.0', type: 'cedarv1', cedar })
    }
    await replace(of('a', 'corp'))
    const policies = await follow()
    expect(policies.current.primaryUpstreamProvider).toBe('corp')
    await replace(of('b', 'other'))
    await expect.poll(() => loads.at(-1), SOON).toEqual({ outcome: 'failed', problems: [expect.stringContaining('next start')] })
    expect(allows(policies, 'a')).toBe(true)
    await replace(of('c', 'corp'))
    await expect.poll(() => allows(policies, 'c'), SOON).toBe(true)
  })

  it('refuse to open without a good document', async () => {
    await expect(follow()).rejects.toThrow(InvalidOptions)
  })

  it('have the hash of their document', async () => {
    const config = { version: '1.0', type: 'cedarv1', cedar: { policies: [PERMIT('a')], entities_json: '[]' } }
    await replace(`${JSON.stringify(config, undefined, 2)}\n`)
    expect((await follow()).current.hash).toBe(configHash(config))
  })
})

it('policies of the run config have candidates beside them', async () => {
  const config = { version: '1.0', type: 'cedarv1', cedar: { policies: [PERMIT('a')], entities_json: '[]' } }
  live = await LivePolicies.open({ source: { config: { ...config, candidate: config.cedar } }, server: 'test' }, { log })
  expect(live.current.candidate).toBeDefined()
  await expect(LivePolicies.open({ source: { config: { ...config, type: 'other' } }, server: 'test' }, { log })).rejects.toThrow(
    /type must be cedarv1/,
  )
})
