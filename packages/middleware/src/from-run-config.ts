import { readFileSync } from 'node:fs'
import type { UpstreamTokens } from '@thv/authserver/upstream-tokens'
import type { Outbound } from '@thv/http/outbound/outbound'
import type { Clock } from '@thv/kernel/clock'
import { errorMessage } from '@thv/kernel/errors'
import { mountedPath } from '@thv/kernel/mounted-path'
import { programPath } from '@thv/kernel/program-scope'
import { type AuditConfig, auditReader } from '@thv/runconfig/audit-config'
import type { Findings } from '@thv/runconfig/field'
import { BUILT_MIDDLEWARE, type BuiltMiddleware } from '@thv/runconfig/middleware-table'
import type { RunConfig } from '@thv/runconfig/run-config'
import { runConfigError } from '@thv/runconfig/run-config-errors'
import type { RedisClient } from '@thv/store/redis/redis-client'
import type { LineOutput } from '@thv/telemetry/lines/line-output'
import { RotatingFile } from '@thv/telemetry/lines/rotating-file'
import { standardOutput } from '@thv/telemetry/lines/standard-output'
import type { Log } from '@thv/telemetry/log'
import type { Metrics } from '@thv/telemetry/metrics'
import type { OtlpExporter } from '@thv/telemetry/otlp/otlp-exporter'
import { createAudit, eventSelector } from './audit/audit.ts'
import { createAuditLog } from './audit/audit-log.ts'
import { withOtlp } from './audit/audit-otlp.ts'
import { loginEvent } from './audit/login-event.ts'
import { systemEvent } from './audit/system-event.ts'
import { type WorkflowFeed, workflowEvent } from './audit/workflow-event.ts'
import type { LivePolicies } from './authorize/live-policies.ts'
import { makeHeaderInjection, makeRemoteAuth, makeTokenExchange } from './credentials/credentials-from-run-config.ts'
import { createHeaderForward } from './header-forward/header-forward.ts'
import { InvalidOptions } from './pipeline/invalid-options.ts'
import type { Middleware } from './pipeline/middleware.ts'
import { compilePipeline, type Pipeline } from './pipeline/pipeline.ts'
import { fromField, secretVariable, secretVariableName } from './pipeline/run-config-options.ts'
import type { ToolSource } from './pipeline/tool-source.ts'
import { makeRateLimit } from './rate-limit/rate-limit-from-run-config.ts'
import { makeAuthenticate, type OwnIssuer } from './run-config/make-authenticate.ts'
import { makeAuthorize } from './run-config/make-authorize.ts'
import { makeUpstreamSwap } from './run-config/make-upstream-swap.ts'
import { exchangedToken } from './run-config/upstream-options.ts'
import { makeExporter, makeTelemetry } from './telemetry/telemetry-from-run-config.ts'
import { createToolFilter } from './tool-filter/tool-filter.ts'

export interface MiddlewareDeps {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly log: Log
  readonly metrics: Metrics
  readonly clock: Clock
  /** For questions to identity providers. Without a policy of its own. */
  readonly outbound: Outbound
  /** The policies that the document asks for, from `openPolicies`. The middleware closes them. */
  readonly policies?: LivePolicies | undefined
  /** The backend, for what policies have to know of its tools. Absent: that is not known. */
  readonly toolSource?: ToolSource | undefined
  /** Where replicas share limits; absent: each counts for itself. */
  readonly redis?: RedisClient | undefined
  /** The authorization server in this program, if there is one. */
  readonly ownIssuer?: OwnIssuer | undefined
  /** The vault of the embedded authorization server. */
  readonly upstreamTokens?: UpstreamTokens | undefined
  /** Of the composite tools in this program, if it has any. */
  readonly workflows?: WorkflowFeed | undefined
}

/** The dependencies that makers share beside these. */
interface MakerDeps extends MiddlewareDeps {
  /** Where telemetry and audit events go; undefined where no collector is configured. */
  readonly exporter: OtlpExporter | undefined
}

/** Undefined: the document does not ask for it. */
type Make = (config: RunConfig, deps: MakerDeps) => Middleware | undefined

/** One factory for every built middleware of the table; the compiler rejects a missing or an extra one. */
const MAKERS: Record<BuiltMiddleware, Make> = {
  audit: makeAudit,
  auth: (config, deps) => fromField('oidc_config', () => makeAuthenticate(config, deps)),
  'telemetry-export': makeTelemetry,
  'tool-filter': makeToolFilter,
  authorization: makeAuthorize,
  ratelimit: makeRateLimit,
  tokenexchange: (config, deps) => makeTokenExchange(config, { ...deps, upstreamToken: exchangedToken(config, deps.upstreamTokens) }),
  upstreamswap: makeUpstreamSwap,
  'header-injection': makeHeaderInjection,
  'remote-auth': makeRemoteAuth,
  'header-forward': makeHeaderForward,
}

/** The pipeline that a RunConfig asks for, in the order of the table. Throws `run_config_invalid`. */
export function pipelineFromRunConfig(config: RunConfig, deps: MiddlewareDeps): Pipeline {
  const shared = { ...deps, exporter: makeExporter(config, deps) }
  return compilePipeline(BUILT_MIDDLEWARE.map((name) => MAKERS[name](config, shared)).filter((made) => made !== undefined))
}

function makeAudit(
  config: RunConfig,
  { log, metrics, clock, exporter, policies, ownIssuer, workflows }: MakerDeps,
): Middleware | undefined {
  const audit = auditConfigOf(config, log)
  if (audit?.enabled !== true) return undefined
  const component = audit.component ?? config.name
  const output = fromField('audit_config.log_file', () => auditOutput(audit, clock))
  const options = {
    component,
    eventTypes: audit.event_types,
    excludeEventTypes: audit.exclude_event_types,
    includeRequestData: audit.include_request_data,
    includeResponseData: audit.include_response_data,
    detectApplicationErrors: audit.detect_application_errors,
    maxDataBytes: audit.max_data_size,
    maxDelegationDepth: audit.max_delegation_depth,
    trustProxyHeaders: config.trust_proxy_headers,
    trustedProxies: config.trusted_proxies,
  }
  const lines = createAuditLog({ output, component, backend: config.name, clock, log, metrics })
  if (audit.otlp && exporter === undefined) throw runConfigError('run_config_invalid', 'audit_config.otlp needs telemetry_config.endpoint')
  const sink = audit.otlp && exporter !== undefined ? withOtlp(lines, exporter) : lines
  ownIssuer?.observe?.((event) => sink.write(loginEvent(event, { component, backend: config.name, clock })))
  const isSelected = eventSelector(options)
  workflows?.observe((record) => {
    if (isSelected(record.type)) sink.write(workflowEvent(record, { component, backend: config.name, clock }))
  })
  policies?.observe((event) => {
    if (event.outcome === 'ok') return
    const problems = event.problems.slice(0, MAX_PROBLEMS).map((problem) => problem.slice(0, 256))
    sink.write(systemEvent('authz_reload_failed', { component, backend: config.name, clock }, { problems }))
  })
  return createAudit(options, { clock, sink })
}

/** More of them do not help, and an event must not become large. */
const MAX_PROBLEMS = 10

function auditConfigOf({ audit_config: config, audit_config_path: path }: RunConfig, log: Log): AuditConfig | undefined {
  if (config !== undefined || path === undefined) return config
  const findings: Findings = { problems: [], warnings: [] }
  let read: AuditConfig | undefined
  try {
    read = auditReader.read(JSON.parse(readFileSync(mountedPath(path), 'utf8')), 'audit_config', findings)
  } catch (error) {
    const reason = error instanceof SyntaxError ? 'is not JSON' : `cannot be read: ${errorMessage(error)}`
    throw runConfigError('run_config_invalid', `audit_config_path: ${path} ${reason}`)
  }
  const [problem] = findings.problems
  if (problem !== undefined || read === undefined)
    throw runConfigError('run_config_invalid', `audit_config_path: ${problem?.path} ${problem?.message}`)
  for (const warning of findings.warnings) log.warn(`audit_config_path: ${warning.path} ${warning.message}`)
  return read
}

function auditOutput({ log_file: path, max_file_size: maxBytes, max_files: maxFiles }: AuditConfig, clock: Clock): LineOutput {
  if (path === undefined) return standardOutput()
  try {
    return new RotatingFile({ path: programPath(path), maxBytes, maxFiles, clock })
  } catch (error) {
    throw new InvalidOptions(`${path} cannot be opened: ${errorMessage(error)}`)
  }
}

function makeToolFilter({ tools_filter: filter, tools_override: overrides }: RunConfig, { log }: MiddlewareDeps): Middleware | undefined {
  if (filter.length === 0 && Object.keys(overrides).length === 0) return undefined
  const warn = (message: string) => log.warn(`tools_filter: ${message}`)
  return fromField('tools_override', () => createToolFilter({ filter, overrides }, { warn }))
}

const FROM_SECRET = 'header_forward.add_headers_from_secret'

function makeHeaderForward({ header_forward: forward }: RunConfig, { env, log }: MiddlewareDeps): Middleware | undefined {
  if (forward === undefined) return undefined
  const secrets = Object.entries(forward.add_headers_from_secret).map(
    ([name, secret]) => [name, secretVariable(secretVariableName(secret), FROM_SECRET, env)] as const,
  )
  const headers = { ...forward.add_plaintext_headers, ...Object.fromEntries(secrets) }
  if (Object.keys(headers).length === 0) return undefined
  const warn = (message: string) => log.warn(`header_forward: ${message}`)
  return fromField('header_forward', () => createHeaderForward({ headers }, { warn }))
}
