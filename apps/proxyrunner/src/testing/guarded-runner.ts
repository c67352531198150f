import { WireClient } from '@thv/gateway/testing/wire-client'
import { createOutbound } from '@thv/http/outbound/outbound'
import { type Clock, systemClock } from '@thv/kernel/clock'
import { pipelineFromRunConfig } from '@thv/middleware/from-run-config'
import { LateToolSource } from '@thv/middleware/pipeline/tool-source'
import { openPolicies } from '@thv/middleware/run-config/make-authorize'
import { protectedResourceOf } from '@thv/middleware/run-config/protected-resource-of'
import { readRunConfig } from '@thv/runconfig/read-run-config'
import type { RunConfig } from '@thv/runconfig/run-config'
import { createMetrics } from '@thv/telemetry/metrics'
import { CollectingLog } from '@thv/telemetry/testing/collecting-log'
import { startFixture } from '@thv/testkit/mcp/fixture'
import { type OidcServer, startOidcServer } from '@thv/testkit/oidc/oidc-server'
import { startTestRunner, type TestRunner, type TestRunnerOptions } from './test-runner.ts'

export interface GuardedRunner extends AsyncDisposable {
  readonly idp: OidcServer
  readonly runner: TestRunner
  /** Lines of the middleware and of the gateway. */
  readonly logged: () => string
  /** With a token of this subject. */
  client(subject: string): Promise<WireClient>
}

export interface GuardedRunnerOptions extends Partial<Omit<TestRunnerOptions, 'backend'>> {
  /** Members of the RunConfig, `oidc_config` without issuer. */
  readonly config?: Readonly<Record<string, unknown>> & { readonly oidc_config?: object }
  readonly authClock?: Clock
  /** Scopes that users can grant to clients at the provider. */
  readonly scopes?: readonly string[]
}

export const AUDIENCE = 'tests'

/** A runner that asks for tokens of a real identity provider, in front of the fixture server. */
export async function startGuardedRunner(options: GuardedRunnerOptions = {}): Promise<GuardedRunner> {
  const { config: given = {}, authClock, scopes = [], transport, server, ...rest } = options
  await using stack = new AsyncDisposableStack()
  const idp = stack.use(await startOidcServer({ scopes }))
  const fixture = stack.use(await startFixture({ transport: transport === 'sse' ? 'sse' : 'http' }))
  const oidc = { issuer: idp.issuer, audience: AUDIENCE, allow_private_ip: true, ...given.oidc_config }
  const config = configOf({ ...given, oidc_config: oidc, remote_url: fixture.url, transport: transport ?? 'streamable-http' })
  const log = new CollectingLog()
  const outbound = createOutbound()
  stack.defer(() => outbound.close())
  const deps = { env: {}, log, metrics: createMetrics(), clock: authClock ?? systemClock, outbound }
  const toolSource = new LateToolSource()
  const pipeline = pipelineFromRunConfig(config, { ...deps, toolSource, policies: await openPolicies(config, deps) })
  stack.defer(() => pipeline.close(AbortSignal.timeout(5_000)))
  const own = { ...server, resource: protectedResourceOf(config) }
  const runner = stack.use(await startTestRunner({ backend: fixture.url, pipeline, server: own, ...(transport && { transport }), ...rest }))
  toolSource.bind(runner.backend)
  if (transport !== 'sse') await runner.probed()
  const owned = stack.move()
  return {
    ...{ idp, runner },
    logged: () => [...log.lines, ...runner.logged].join('\n'),
    client: async (sub) => new WireClient(runner.url, { authorization: `Bearer ${await idp.token({ claims: { sub } })}` }),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

function configOf(document: object): RunConfig {
  const read = readRunConfig({ name: 'test', ...document })
  if (!read.ok) throw new TypeError(JSON.stringify(read.problems))
  return read.config
}
