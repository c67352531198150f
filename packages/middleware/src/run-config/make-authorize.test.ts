import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createOutbound } from '@thv/http/outbound/outbound'
import type { Exchange } from '@thv/http/server/exchange'
import { systemClock } from '@thv/kernel/clock'
import { readRunConfig } from '@thv/runconfig/read-run-config'
import type { RunConfig } from '@thv/runconfig/run-config'
import { AUTHZ_PATH } from '@thv/runconfig/run-config-mount'
import { createMetrics } from '@thv/telemetry/metrics'
import { CollectingLog } from '@thv/telemetry/testing/collecting-log'
import { expect, it, vi } from 'vitest'
import { pipelineFromRunConfig } from '../from-run-config.ts'
import type { ToolsRequest } from '../pipeline/tool-source.ts'
import { testContext } from '../testing/test-context.ts'
import { makeAuthorize, openPolicies } from './make-authorize.ts'

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

it.each([
  ['another provider', 'new'],
  ['a provider where the document names none', undefined],
])('mounted policies that still name %s are waited for, as long as the limit is', async (_, provider) => {
  await using stack = new AsyncDisposableStack()
  const root = await mkdtemp(join(tmpdir(), 'thv-mounted-'))
  stack.defer(() => rm(root, { recursive: true }))
  vi.stubEnv('THV_ROOT', root)
  stack.defer(() => void vi.unstubAllEnvs())
  const file = join(root, AUTHZ_PATH)
  await mkdir(dirname(file), { recursive: true })
  const write = async (named: string | undefined) => {
    const { authz_config } = cedar('permit(principal, action, resource);')
    const document = { ...authz_config, cedar: { ...authz_config.cedar, primary_upstream_provider: named } }
    await writeFile(`${file}.new`, JSON.stringify(document))
    await rename(`${file}.new`, file)
  }
  const config = {
    ...configOf({ authz_config_path: AUTHZ_PATH }),
    ...(provider !== undefined && { authz_primary_upstream_provider: provider }),
  }
  const { signal } = new AbortController()
  await write('old')
  await expect(openPolicies(config, { ...deps(), awaited: { limitMs: 0, signal } })).rejects.toMatchObject({ code: 'run_config_invalid' })
  const parts = deps()
  const opened = openPolicies(config, { ...parts, awaited: { limitMs: 60_000, signal } })
  await expect.poll(() => parts.log.lines.join(), { timeout: 20_000 }).toContain('waiting')
  await write(provider)
  const policies = await opened
  expect(policies?.current.primaryUpstreamProvider).toBe(provider)
  await policies?.close()
})

it('a pipeline without the policies that its run config asks for cannot be made', async () => {
  await using outbound = createOutbound()
  expect(() => pipelineFromRunConfig(configOf(cedar('permit(principal, action, resource);')), { ...deps(), env: {}, outbound })).toThrow(
    TypeError,
  )
})

const oidc_config = { issuer: 'https://idp.example.com', audience: 'a' }
const token_exchange_config = { token_url: 'https://idp.example.com/token' }
const header_injection_config = { header_name: 'X-Key', header_value_env: 'KEY' }

it.each([
  ['nothing authenticates: each bearer', {}, ['Bearer a', 'Bearer b']],
  ['the token is passed on: each bearer', { oidc_config: { ...oidc_config, forward_token: true } }, ['Bearer a', 'Bearer b']],
  ['the token stays here: one for all', { oidc_config }, [undefined]],
  ['a header is injected: one for all', { oidc_config, header_injection_config }, [undefined]],
  ['tokens are exchanged: each caller', { oidc_config, token_exchange_config }, ['token a', 'token b']],
  ['bearers are exchanged as they come: each bearer', { token_exchange_config }, ['token a', 'token b']],
])('the server is asked for hints with the credentials that its calls have; where %s', async (_, document, expected) => {
  const parts = deps()
  const config = configOf({ ...cedar('permit(principal, action, resource) when { resource.readOnlyHint };'), ...document })
  const policies = await openPolicies(config, parts)
  const asked: ToolsRequest[] = []
  const toolSource = {
    async tools(request: ToolsRequest) {
      asked.push(request)
      return [{ name: 'look', annotations: { readOnlyHint: true } }]
    },
  }
  await using outbound = createOutbound()
  const middleware = makeAuthorize(config, { ...parts, env: {}, outbound, policies, toolSource })
  for (const user of ['a', 'b', 'a']) {
    const caller = 'oidc_config' in document ? { principal: user, token: user } : { principal: 'anonymous' }
    const exchange = { headers: { authorization: `Bearer ${user}`, 'x-tenant': user } } as unknown as Exchange
    const context = testContext({ id: 1, method: 'tools/call', params: { name: 'look' } }, { caller, exchange })
    expect(await middleware?.message?.(context)).toBeUndefined()
  }
  expect(asked.map(({ authorization, caller }) => authorization ?? (caller && `token ${caller.token}`))).toEqual(expected)
  await middleware?.close?.(AbortSignal.timeout(1_000))
})
