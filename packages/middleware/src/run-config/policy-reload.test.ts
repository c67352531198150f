import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { createOutbound } from '@thv/http/outbound/outbound'
import { systemClock } from '@thv/kernel/clock'
import { readRunConfig } from '@thv/runconfig/read-run-config'
import { createMetrics } from '@thv/telemetry/metrics'
import { CollectingLog } from '@thv/telemetry/testing/collecting-log'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { pipelineFromRunConfig } from '../from-run-config.ts'
import { testContext } from '../testing/test-context.ts'
import { openPolicies } from './make-authorize.ts'

/* Policies of a mounted file that break and heal while calls are judged. */

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'reload-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const SOON = { timeout: 120_000, interval: 50 }
const MAY = (tool: string) => `permit(principal, action, resource == Tool::"${tool}");`

/** About a megabyte: groups in groups. */
const GROUPS = 7_000
const entities = JSON.stringify(
  Array.from({ length: GROUPS }, (_, at) => ({
    uid: { type: 'THVGroup', id: `group-${at}` },
    attrs: { note: 'x'.repeat(60) },
    parents: at % 10 === 0 ? [] : [{ type: 'THVGroup', id: `group-${at - 1}` }],
  })),
)

/** As Kubernetes does. */
function put(text: string): void {
  const path = join(folder, 'authz.json')
  writeFileSync(`${path}.new`, text)
  renameSync(`${path}.new`, path)
}

const documentOf = (...policies: string[]) =>
  JSON.stringify({ version: '1.0', type: 'cedarv1', cedar: { policies, entities_json: entities } })

async function start() {
  const read = readRunConfig({
    ...{ name: 'test', transport: 'streamable-http', remote_url: 'https://example.com/mcp', authz_config_path: join(folder, 'authz.json') },
    audit_config: { enabled: true, log_file: join(folder, 'audit.log') },
  })
  if (!read.ok) throw new TypeError(JSON.stringify(read.problems))
  const log = new CollectingLog()
  const outbound = createOutbound()
  const deps = { env: {}, log, metrics: createMetrics(), clock: systemClock, outbound }
  const policies = await openPolicies(read.config, deps)
  if (policies === undefined) throw new TypeError('there are policies')
  const pipeline = pipelineFromRunConfig(read.config, { ...deps, policies })
  const isAllowed = (name: string) => pipeline.message(testContext({ id: 1, method: 'tools/call', params: { name } }, {})) === undefined
  return {
    ...{ policies, isAllowed },
    async [Symbol.asyncDispose]() {
      await pipeline.close(AbortSignal.timeout(5_000))
      await outbound.close()
    },
  }
}

const events = () =>
  readFileSync(join(folder, 'audit.log'), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))

it('a megabyte of entities that breaks and heals under load is never open, keeps the last good set, and is in the audit log', {
  timeout: 600_000,
}, async () => {
  expect(entities.length).toBeGreaterThan(900_000)
  put(documentOf(MAY('always'), MAY('first')))
  await using proxy = await start()
  const { policies, isAllowed } = proxy
  const load = { judged: 0, isOver: false, wrong: [] as string[] }
  const calling = (async () => {
    while (!load.isOver) {
      load.judged++
      if (!isAllowed('always')) load.wrong.push('a tool that every set permits was denied')
      if (isAllowed('never')) load.wrong.push('a tool that no set permits was allowed')
      if (isAllowed('first') === isAllowed('second')) load.wrong.push('parts of two sets were in force')
      await setTimeout(1)
    }
  })()

  const good = policies.current
  const failures = () => events().filter(({ type }) => type === 'authz_reload_failed')
  for (const [at, broken] of [documentOf(MAY('never'), 'permit('), documentOf(MAY('never')).slice(0, -9), ''].entries()) {
    put(broken)
    await expect.poll(() => failures().length, SOON).toBeGreaterThan(at)
    expect(policies.current).toBe(good)
  }
  put(documentOf(MAY('always'), MAY('second')))
  await expect.poll(() => isAllowed('second'), SOON).toBe(true)
  load.isOver = true
  await calling
  expect(load.wrong).toEqual([])
  expect(load.judged).toBeGreaterThan(10)

  const schema = JSON.parse(readFileSync(new URL('../../../../docs/reference/audit-event.schema.json', import.meta.url), 'utf8'))
  const validate = new Ajv2020({ strict: false, validateFormats: false }).compile(schema)
  for (const event of failures()) {
    validate(event)
    expect(validate.errors).toBeNull()
    expect(event).toMatchObject({ outcome: 'error', subjects: { user: 'system' }, metadata: { extra: { problems: [expect.any(String)] } } })
    expect(JSON.stringify(event)).not.toContain('never')
  }
})
