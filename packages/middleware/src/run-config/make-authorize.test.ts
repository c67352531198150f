import { createOutbound } from '@thv/http/outbound/outbound'
import { systemClock } from '@thv/kernel/clock'
import { readRunConfig } from '@thv/runconfig/read-run-config'
import type { RunConfig } from '@thv/runconfig/run-config'
import { createMetrics } from '@thv/telemetry/metrics'
import { CollectingLog } from '@thv/telemetry/testing/collecting-log'
import { expect, it } from 'vitest'
import { pipelineFromRunConfig } from '../from-run-config.ts'
import { testContext } from '../testing/test-context.ts'
import { openPolicies } from './make-authorize.ts'

function configOf(document: object): RunConfig {
  const read = readRunConfig({ name: 'x', transport: 'streamable-http', remote_url: 'https://example.com/mcp', ...document })
  if (!read.ok) throw new TypeError(JSON.stringify(read.problems))
  return read.config
}

const cedar = (...policies: string[]) => ({ authz_config: { version: '1.0', type: 'cedarv1', cedar: { policies } } })
const deps = () => ({ log: new CollectingLog(), clock: systemClock, metrics: createMetrics() })

it('policies of a run config decide by the real names of tools, and count', async () => {
  const parts = deps()
  const config = configOf({
    ...cedar('permit(principal, action, resource == Tool::"real") when { resource.readOnlyHint };'),
    tools_override: { real: { name: 'shown', annotations: { readOnlyHint: true } } },
  })
  const policies = await openPolicies(config, parts)
  await using outbound = createOutbound()
  const pipeline = pipelineFromRunConfig(config, { ...parts, env: {}, outbound, policies })
  const call = (name: string) => testContext({ id: 1, method: 'tools/call', params: { name } })
  expect(await pipeline.message(call('shown'))).toBeUndefined()
  expect(await pipeline.message(testContext({ id: 1, method: 'prompts/get', params: { name: 'p' } }))).toMatchObject({
    error: 'access_denied',
  })
  const listed = pipeline.item(testContext({ id: 1, method: 'tools/list' }), 'tools/list', { name: 'real' })
  expect(listed).toMatchObject({ name: 'shown' })
  const page = parts.metrics.render()
  expect(page).toContain('toolhive_mcp_authz_decisions_total{decision="allow"} 1')
  expect(page).toContain('toolhive_mcp_authz_decisions_total{decision="deny"} 1')
  expect(page).toContain(`toolhive_mcp_authz_policies_info{hash="${policies?.current.hash}"} 1`)
  await pipeline.close(AbortSignal.timeout(1_000))
})

it('a run config whose policies do not work is refused, by field', async () => {
  expect(await openPolicies(configOf({}), deps())).toBeUndefined()
  await expect(openPolicies(configOf(cedar('permit(')), deps())).rejects.toMatchObject({
    code: 'run_config_invalid',
    message: expect.stringMatching(/^authz_config: cedar\.policies\[0\]: /),
  })
  for (const path of ['/no/such/authz.json', '/etc/../authz.json'])
    await expect(openPolicies(configOf({ authz_config_path: path }), deps())).rejects.toMatchObject({
      code: 'run_config_invalid',
      message: expect.stringMatching(/^authz_config_path: /),
    })
})

it('a pipeline without the policies that its run config asks for cannot be made', async () => {
  await using outbound = createOutbound()
  expect(() => pipelineFromRunConfig(configOf(cedar('permit(principal, action, resource);')), { ...deps(), env: {}, outbound })).toThrow(
    TypeError,
  )
})
