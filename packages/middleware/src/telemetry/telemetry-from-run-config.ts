import { readFileSync } from 'node:fs'
import { headerText, isHeaderValue, isToken } from '@thv/http/header-map'
import { type CaBundle, parseCaBundle } from '@thv/http/outbound/ca-bundle'
import { collect } from '@thv/http/outbound/collect'
import type { Outbound, Target } from '@thv/http/outbound/outbound'
import type { Clock } from '@thv/kernel/clock'
import { errorMessage, ThvError } from '@thv/kernel/errors'
import { mountedPath } from '@thv/kernel/mounted-path'
import type { RunConfig } from '@thv/runconfig/run-config'
import { runConfigError } from '@thv/runconfig/run-config-errors'
import type { TelemetryConfig } from '@thv/runconfig/telemetry-config'
import type { Log } from '@thv/telemetry/log'
import type { Metrics } from '@thv/telemetry/metrics'
import { OtlpExporter, type OtlpSend } from '@thv/telemetry/otlp/otlp-exporter'
import type { Attributes } from '@thv/telemetry/otlp/otlp-json'
import { createSourceAddress } from '../audit/source-address.ts'
import type { Middleware } from '../pipeline/middleware.ts'
import { type Env, secretVariable } from '../pipeline/run-config-options.ts'
import { createTelemetry } from './telemetry.ts'

export interface ExporterDeps {
  readonly env: Env
  readonly log: Log
  readonly metrics: Metrics
  readonly clock: Clock
  readonly outbound: Outbound
}

export interface TelemetryMakerDeps extends ExporterDeps {
  readonly exporter: OtlpExporter | undefined
}

/** Undefined without a collector. */
export function makeExporter(config: RunConfig, deps: ExporterDeps): OtlpExporter | undefined {
  const telemetry = config.telemetry_config
  if (telemetry?.endpoint === undefined) return undefined
  const { env, log, metrics, clock } = deps
  const version = telemetry.service_version ?? VERSION
  return new OtlpExporter({
    source: { resource: resourceOf(config, telemetry, env), scope: { name: 'toolhive', version } },
    send: sender(telemetry, telemetry.endpoint, deps),
    ...{ log, metrics, clock },
    metricsIntervalMs: telemetry.metrics_enabled ? milliseconds(env, 'OTEL_METRIC_EXPORT_INTERVAL', METRICS_INTERVAL_MS) : undefined,
    intervalMs: milliseconds(env, 'OTEL_BSP_SCHEDULE_DELAY', BATCH_INTERVAL_MS),
  })
}

/** Undefined where the document asks for neither traces nor metrics. */
export function makeTelemetry(config: RunConfig, { env, metrics, clock, exporter }: TelemetryMakerDeps): Middleware | undefined {
  const telemetry = config.telemetry_config
  if (telemetry === undefined) return undefined
  if (exporter === undefined && !telemetry.enable_prometheus_metrics_path) return undefined
  const { trust_proxy_headers: trustProxyHeaders, trusted_proxies: trustedProxies } = config
  return createTelemetry(
    {
      server: config.name,
      traces: telemetry.tracing_enabled,
      rate: Number(telemetry.sampling_rate),
      trustsParent: trustProxyHeaders,
      usesLegacyAttributes: telemetry.use_legacy_attributes,
      attributes: environmentAttributes(telemetry.environment_variables, env),
      sourceAddress: createSourceAddress({ trustProxyHeaders, trustedProxies }),
    },
    { clock, metrics, exporter },
  )
}

const VERSION = '0.1.0'
/** Those of the OpenTelemetry specification; its variables change them. */
const METRICS_INTERVAL_MS = 60_000
const BATCH_INTERVAL_MS = 5_000
const SEND_MS = 10_000
const MAX_ANSWER_BYTES = 64 * 1024

function sender(telemetry: TelemetryConfig, endpoint: string, { env, outbound, clock }: ExporterDeps): OtlpSend {
  const url = new URL(`${telemetry.insecure ? 'http' : 'https'}://${endpoint}`)
  const target: Target = outbound.target({ url: url.origin, ca: caBundle(telemetry.ca_cert_path) })
  const headers = ['content-type', 'application/json', ...headersOf(telemetry, env)]
  const prefix = url.pathname.replace(/\/+$/, '')
  return async (signal, body) => {
    const limit = new AbortController()
    // Over all of it: an answer that trickles has no end of its own.
    const timer = clock.setTimer(SEND_MS, () => limit.abort(new ThvError('timeout', `no answer within ${SEND_MS} ms`)))
    try {
      const request = { method: 'POST', path: `${prefix}/v1/${signal}`, headers: [...headers], body, maxResponseBytes: MAX_ANSWER_BYTES }
      const answer = await collect(target, { ...request, signal: limit.signal })
      return { status: answer.status, retryAfterMs: retryAfterMs(headerText(answer.headers['retry-after']), clock.now()) }
    } finally {
      timer.cancel()
    }
  }
}

/** Seconds, or a date (RFC 9110 §10.2.3). */
function retryAfterMs(value: string | undefined, now: number): number | undefined {
  if (value === undefined) return undefined
  const ms = /^\d+$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - now
  return Number.isFinite(ms) && ms > 0 ? ms : undefined
}

function headersOf({ headers, sensitive_headers: sensitive }: TelemetryConfig, env: Env): string[] {
  const secrets = sensitive.map((name) => [name, secretVariable(headerVariable(name), 'telemetry_config.sensitive_headers', env)] as const)
  return [...Object.entries(headers), ...secrets].flatMap(([name, value]) => {
    if (!isToken(name) || !isHeaderValue(value))
      throw runConfigError(
        'run_config_invalid',
        `telemetry_config.headers: ${JSON.stringify(name)} has a name or value that cannot be sent`,
      )
    return [name.toLowerCase(), value]
  })
}

/** The variable that holds the value of a sensitive header. */
export function headerVariable(name: string): string {
  return `TOOLHIVE_OTEL_HEADER_${name.toUpperCase().replaceAll('-', '_')}`
}

function caBundle(path: string | undefined): CaBundle | undefined {
  if (path === undefined) return undefined
  try {
    return parseCaBundle(readFileSync(mountedPath(path), 'utf8'), { name: path })
  } catch (error) {
    throw runConfigError('run_config_invalid', `telemetry_config.ca_cert_path: ${path} cannot be used: ${errorMessage(error)}`)
  }
}

/** The variable of OpenTelemetry, then the members of the document over it. */
function resourceOf({ name }: RunConfig, telemetry: TelemetryConfig, env: Env): Attributes {
  const own = { 'telemetry.sdk.name': 'toolhive', 'telemetry.sdk.language': 'nodejs', 'telemetry.sdk.version': VERSION }
  const given = resourceAttributes(env['OTEL_RESOURCE_ATTRIBUTES'] ?? '')
  const service = telemetry.service_name ?? given['service.name'] ?? `thv-${name}`
  return {
    ...own,
    'service.version': VERSION,
    ...given,
    ...telemetry.custom_attributes,
    'service.name': service,
    ...(telemetry.service_version !== undefined && { 'service.version': telemetry.service_version }),
  }
}

function resourceAttributes(text: string): Record<string, string> {
  const attributes: Record<string, string> = {}
  for (const pair of text.split(',')) {
    const at = pair.indexOf('=')
    if (at < 1) continue
    attributes[pair.slice(0, at).trim()] = decoded(pair.slice(at + 1).trim())
  }
  return attributes
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text // a percent sign that escapes nothing
  }
}

function environmentAttributes(names: readonly string[], env: Env): Attributes {
  return Object.fromEntries(names.map((name) => [`environment.${name}`, env[name]]))
}

function milliseconds(env: Env, variable: string, otherwise: number): number {
  const value = Number(env[variable])
  return Number.isSafeInteger(value) && value > 0 ? value : otherwise
}
